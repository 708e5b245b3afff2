"""From the `workload` of a scenario to the pods, controllers and events that are drawn for it."""

from collections.abc import Iterable

from lamina.model.pod import Pod
from lamina.simulator.cluster import NodeSpec
from lamina.simulator.workloads.files import Entry
from lamina.simulator.workloads.ledger import Ledger
from lamina.simulator.workloads.planning import Planning
from lamina.simulator.workloads.pod_entries import Around
from lamina.simulator.workloads.pod_schema import MOST_PODS
from lamina.simulator.workloads.stream import Drawn, Plan, Stream
from lamina.simulator.workloads.workload_schema import WorkloadEntry


def drawn(ledger: Ledger, around: Around, nodes: Iterable[NodeSpec], already: int, seed: int) -> Drawn:
    """
    Draw the workload, that of the including file, under a *seed*; *already* is how many pods there are without it.

    Names that are taken are left out, and told.
    """
    said = [part for part in ledger.parts if "workload" in part.document.root.inside]
    if not said or said[-1].document.root.inside["workload"].value is None:
        return Drawn()
    entry = said[-1].single("workload", WorkloadEntry)
    plan = _plan(ledger, around, entry, nodes, already) if entry is not None else None
    if entry is None or plan is None:
        # What events name may be pods and controllers that would have been drawn.
        ledger.complete.update({"pod": False, "controller": False})
        return Drawn()
    made = Stream(plan, seed).draw()
    pods = dict.fromkeys(ledger.take(entry, "pod", (one.pod.name for one in made.arrivals)))
    controllers = dict.fromkeys(ledger.take(entry, "controller", (one.name for one in made.controllers)))
    _check_disks(ledger, around, entry, [one.pod for one in made.arrivals] + [one.template for one in made.controllers])
    return Drawn(
        tuple(one for one in made.arrivals if one.pod.name in pods),
        tuple(one for one in made.controllers if one.name in controllers),
        made.happenings,
    )


def _plan(ledger: Ledger, around: Around, entry: Entry, nodes: Iterable[NodeSpec], already: int) -> Plan | None:
    if already + entry.value.pods > MOST_PODS:
        message = f"too many: with the pods that are listed, at most {MOST_PODS} are simulated"
        ledger.wrong(entry, message, "pods")
        return None
    catalogue = around.catalogue
    planning = Planning(entry, catalogue.all_images, complete=catalogue.complete)
    plan = None
    if around.room is not None:
        planning.mistakes.extend(planning.lacking(around.room))
        if catalogue.complete and not planning.mistakes:
            plan = planning.plan(node.allocatable for node in nodes)
    ledger.mistakes.extend(planning.mistakes)
    return plan


def _check_disks(ledger: Ledger, around: Around, entry: Entry, pods: Iterable[Pod]) -> None:
    """Tell of the first pod whose image does not fit on a disk it may come to; there may be thousands like it."""
    for pod in {(pod.images, pod.requests): pod for pod in pods}.values():
        image = around.catalogue.find(entry, pod.images[0])
        if image is not None and (told := around.disk_room.too_small(pod, image)):
            ledger.wrong(entry, told)
            return
