"""Results of plugin calls that are not numbers. A plugin returns them; it does not raise."""

import enum

import msgspec


class Code(enum.Enum):
    """Meaning of a status; names and meanings are kube-scheduler's."""

    SUCCESS = "Success"
    ERROR = "Error"
    """The plugin failed; the queue retries the pod after a back-off."""
    UNSCHEDULABLE = "Unschedulable"
    """Refused for now; evicting pods could help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Refused, and evicting pods would not help."""
    SKIP = "Skip"
    """The plugin does not apply to this pod."""


class Status(msgspec.Struct, frozen=True):
    """A code, with human-readable reasons unless it is SUCCESS."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the pod's attempt continues: SUCCESS or SKIP."""
        return self.code is Code.SUCCESS or self.code is Code.SKIP

    def of(self, plugin: str) -> "Status":
        """Return a copy that names *plugin* as its source."""
        return Status(self.code, self.reasons, plugin)

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Return a refusal that evicting pods could lift."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Return a refusal that evicting pods would not lift."""
    return Status(Code.UNRESOLVABLE, reasons)


def failed(*reasons: str) -> Status:
    """Return an error status."""
    return Status(Code.ERROR, reasons)


def raised(error: Exception) -> Status:
    """Return the error status for a plugin that raised."""
    return failed(f"a plugin raised {type(error).__name__}: {error}")
