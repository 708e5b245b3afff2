"""The solver: HiGHS's dual simplex from scipy. scipy is optional, and imported only when a profile needs it."""

from typing import Final

import numpy as np

from lamina.model.errors import WiringError
from lamina.scheduling.plugins.batch.min_cost_flow.flow_network import LinearProgram, Solution, Solver

NOT_INSTALLED: Final = (
    "plugin 'MinCostFlow' needs scipy, which is not installed: pip install 'lamina[flow]', or in a checkout: "
    ".venv/bin/pip install -c constraints.txt -e '.[flow]'"
)
SOLVED: Final = 0
STEPS_EXCEEDED: Final = 1


def load_solver() -> Solver:
    """Import scipy. Raise WiringError with a remedy if it is not installed."""
    try:
        from scipy.optimize import linprog
        from scipy.sparse import csc_array
    except ImportError:
        raise WiringError(NOT_INSTALLED) from None

    def solve(program: LinearProgram, most_steps: int) -> Solution | None:
        matrix = csc_array(
            (program.entries, (program.rows, program.columns)), shape=(len(program.demands), len(program.costs))
        )
        found = linprog(
            program.costs,
            A_eq=matrix,
            b_eq=program.demands,
            bounds=np.stack((np.zeros(len(program.bounds)), program.bounds), axis=1),
            method="highs-ds",
            # Networks of this form have nothing to presolve: it takes longer than what it saves.
            options={"presolve": False, "maxiter": max(0, most_steps)},
        )
        if found.status == STEPS_EXCEEDED:
            return None
        if found.status != SOLVED:
            raise RuntimeError(f"the solver returned {found.status}: {found.message}")
        return Solution(found.x, found.eqlin.marginals, int(found.nit))

    return solve
