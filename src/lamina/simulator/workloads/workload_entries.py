"""From the `workload` of a scenario to the pods, controllers and events that are drawn for it."""

from collections.abc import Iterable

from lamina.model.pod import Pod
from lamina.simulator.cluster import VirtualNodeSpec
from lamina.simulator.workloads.assembly_state import AssemblyState
from lamina.simulator.workloads.pod_entries import PodChecks
from lamina.simulator.workloads.pod_schema import MOST_PODS
from lamina.simulator.workloads.pod_stream import DrawnWorkload, PodStream, WorkloadPlan
from lamina.simulator.workloads.scenario_files import ScenarioEntry
from lamina.simulator.workloads.workload_planner import WorkloadPlanner
from lamina.simulator.workloads.workload_schema import WorkloadEntry


def draw_workload(
    ledger: AssemblyState, around: PodChecks, nodes: Iterable[VirtualNodeSpec], already: int, seed: int
) -> DrawnWorkload:
    """
    Draw the workload, that of the including file, under a *seed*; *already* is how many pods there are without it.

    Names that are taken are left out, and told.
    """
    said = [part for part in ledger.parts if "workload" in part.document.root.inside]
    if not said or said[-1].document.root.inside["workload"].value is None:
        return DrawnWorkload()
    entry = said[-1].single("workload", WorkloadEntry)
    plan = _plan(ledger, around, entry, nodes, already) if entry is not None else None
    if entry is None or plan is None:
        # What events name may be pods and controllers that would have been drawn.
        ledger.complete.update({"pod": False, "controller": False})
        return DrawnWorkload()
    made = PodStream(plan, seed).draw()
    pods = dict.fromkeys(ledger.take(entry, "pod", (one.pod.name for one in made.arrivals)))
    controllers = dict.fromkeys(ledger.take(entry, "controller", (one.name for one in made.controllers)))
    _check_disks(ledger, around, entry, [one.pod for one in made.arrivals] + [one.template for one in made.controllers])
    return DrawnWorkload(
        tuple(one for one in made.arrivals if one.pod.name in pods),
        tuple(one for one in made.controllers if one.name in controllers),
        made.happenings,
    )


def _plan(
    ledger: AssemblyState, around: PodChecks, entry: ScenarioEntry, nodes: Iterable[VirtualNodeSpec], already: int
) -> WorkloadPlan | None:
    if already + entry.value.pods > MOST_PODS:
        message = f"too many: with the pods that are listed, at most {MOST_PODS} are simulated"
        ledger.wrong(entry, message, "pods")
        return None
    catalog = around.catalog
    planning = WorkloadPlanner(entry, catalog.all_images, complete=catalog.complete)
    plan = None
    if around.room is not None:
        planning.mistakes.extend(planning.lacking(around.room))
        if catalog.complete and not planning.mistakes:
            plan = planning.plan(node.allocatable for node in nodes)
    ledger.mistakes.extend(planning.mistakes)
    return plan


def _check_disks(ledger: AssemblyState, around: PodChecks, entry: ScenarioEntry, pods: Iterable[Pod]) -> None:
    """Tell of the first pod whose image does not fit on a disk it may come to; there may be thousands like it."""
    for pod in {(pod.images, pod.requests): pod for pod in pods}.values():
        image = around.catalog.find(entry, pod.images[0])
        if image is not None and (told := around.disk_room.too_small(pod, image)):
            ledger.wrong(entry, told)
            return
