"""How a run with a decision process of Batsim's behaves; the same choices as options of Batsim."""

import msgspec


class BatsimSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Choices of the user, as in Batsim's SIMULATION_BEGINS."""

    compute_sharing: bool = False
    """Whether a node may run several jobs at once; its resources still bound them."""
    dynamic_jobs: bool = False
    """Whether the decision process may register jobs. It must then say when it has finished."""
    acknowledge: bool = False
    """Whether registered jobs are confirmed with JOB_SUBMITTED."""
    forward_profiles: bool = False
    """Whether JOB_SUBMITTED includes the profile."""
    forward_unknown_events: bool = False
    """Whether external events of unknown types are passed on."""
    sched_config: str = ""
    """Text for the decision process."""
