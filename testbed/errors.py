"""
Errors of the testbed, with messages a person can act on.

    TestbedError
    ├── MissingError      a part is not available on this machine; the message says what to install
    │   └── RootError     root is required: installing something does not help
    ├── BuildError        Go failed to build a part
    ├── PartError         a part did not start, or ended; carries the last lines of its log
    ├── RefusedError      the API server returned an error
    └── KubectlError      kubectl failed
"""


class TestbedError(Exception):
    """Base of all errors that the testbed raises on purpose; the text is for a person."""

    # The name begins with Test: without this, pytest would collect it.
    __test__ = False


class MissingError(TestbedError):
    """Something must be installed first; the message says what and how in one line."""


class RootError(MissingError):
    """Root is required."""


class BuildError(TestbedError):
    """A part could not be built."""


class PartError(TestbedError):
    """A part is not running although it should be."""


class KubectlError(TestbedError):
    """kubectl failed; the message is its error output."""


class RefusedError(TestbedError):
    """The API server returned an error status."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(request, status, reason, message)
        self.request, self.status, self.reason, self.message = request, status, reason, message

    def __str__(self) -> str:
        return f"{self.request}: {self.status} {self.reason}: {self.message}"
