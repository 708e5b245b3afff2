"""A plugin's answer where the answer is not a number: a value, never an exception."""

import enum

import msgspec


class Code(enum.Enum):
    """What an answer means; the words and their meaning are kube-scheduler's."""

    SUCCESS = "Success"
    ERROR = "Error"
    """Something is broken; the pod is tried again after a back-off."""
    UNSCHEDULABLE = "Unschedulable"
    """Not here, not now; making room could help."""
    UNRESOLVABLE = "UnschedulableAndUnresolvable"
    """Not here, and making room would not help."""
    SKIP = "Skip"
    """This plugin has nothing to say about this pod."""


class Status(msgspec.Struct, frozen=True):
    """A code, and for anything but success the reasons a person will read."""

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the pod may go on (skipping is going on)."""
        return self.code is Code.SUCCESS or self.code is Code.SKIP

    def of(self, plugin: str) -> "Status":
        """Say which plugin this comes from."""
        return Status(self.code, self.reasons, plugin)

    @property
    def message(self) -> str:
        """All reasons in one line."""
        return ", ".join(self.reasons)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Refuse, for now."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Refuse, and say that making room would not help."""
    return Status(Code.UNRESOLVABLE, reasons)


def failed(*reasons: str) -> Status:
    """Report that something is broken."""
    return Status(Code.ERROR, reasons)


def raised(error: Exception) -> Status:
    """Say that a plugin raised instead of answering."""
    return failed(f"a plugin raised {type(error).__name__}: {error}")
