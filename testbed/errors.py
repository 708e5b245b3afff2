"""
What goes wrong with a testbed, in words a person can act on.

    TestbedError
    ├── MissingError      a part cannot be had on this machine; says what to install
    │   └── RootError     or who to be: nothing that is installed helps
    ├── BuildError        Go was there and refused
    ├── PartError         a part did not start, or died; carries the last lines of its log
    ├── RefusedError      the API server answered a request with an error
    └── KubectlError      kubectl did
"""


class TestbedError(Exception):
    """Root of everything the testbed raises on purpose; the text is for a person."""

    # The name begins with Test, and pytest would look for tests in it.
    __test__ = False


class MissingError(TestbedError):
    """Something has to be installed first; one line says what and how."""


class RootError(MissingError):
    """Only root may do this."""


class BuildError(TestbedError):
    """A part does not build."""


class PartError(TestbedError):
    """A part is not running although it should."""


class KubectlError(TestbedError):
    """What kubectl wrote when it failed."""


class RefusedError(TestbedError):
    """The API server answered, and not with what was asked for."""

    def __init__(self, request: str, status: int, reason: str, message: str) -> None:
        super().__init__(request, status, reason, message)
        self.request, self.status, self.reason, self.message = request, status, reason, message

    def __str__(self) -> str:
        return f"{self.request}: {self.status} {self.reason}: {self.message}"
