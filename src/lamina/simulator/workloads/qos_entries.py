"""
Promises of availability in a scenario: the `qos` of an entry, and the annotations and label that it puts on pods.

The names of the annotations are those of the QoS-driven scheduler of Farias da Silva et al. (2020). The class is a
label, because reports and selectors group by it.
"""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

import msgspec

from lamina.model.pod import Pod
from lamina.simulator.workloads.field_types import EntryStruct, Name

CONTROLLER_ANNOTATION: Final = "controller"
SLO_ANNOTATION: Final = "slo"
MEASURING_ANNOTATION: Final = "qosMeasuring"
OVERHEAD_ANNOTATION: Final = "acceptablePreemptionOverhead"
CLASS_LABEL: Final = "class"

QosMeasuring = Literal["independent", "average", "concurrent", "aggregate"]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]


class QosEntry(EntryStruct, frozen=True, kw_only=True):
    """The availability that a controller promises, and how it is measured."""

    slo: Share
    """Share of their lifetime that its pods have to run."""
    name: Name | None = msgspec.field(default=None, name="class")
    """Class of controllers that a report joins; unset: all controllers with this SLO."""
    measuring: QosMeasuring | None = None
    """How the scheduler measures it; unset: the scheduler decides by the kind of the controller."""
    overhead: Share | None = None
    """Share of lost time up to which preemption is acceptable; unset: the scheduler's."""


def with_promise(pod: Pod, controller: str, promise: QosEntry) -> Pod:
    """Return the pod with the annotations and the label of a promise; values that it already has are kept."""
    texts: dict[str, str | None] = {
        CONTROLLER_ANNOTATION: controller,
        SLO_ANNOTATION: f"{promise.slo:g}",
        MEASURING_ANNOTATION: promise.measuring,
        OVERHEAD_ANNOTATION: None if promise.overhead is None else f"{promise.overhead:g}",
    }
    annotations = {key: text for key, text in texts.items() if text is not None}
    labels: Mapping[str, str] = {} if promise.name is None else {CLASS_LABEL: promise.name}
    return msgspec.structs.replace(pod, annotations={**annotations, **pod.annotations}, labels={**labels, **pod.labels})
