"""
An image registry without a control plane, and a log of its requests.

    with RegistryServer() as registry:
        made.push(registry.host, "web:1", image)
        registry.requests()
"""

from testbed import access_log, building, launching
from testbed import parts as catalog
from testbed.access_log import Asked
from testbed.processes import Program
from testbed.standalone import Standalone


class RegistryServer(Standalone):
    """A registry over plain HTTP without authentication."""

    def __enter__(self) -> "RegistryServer":
        building.build([catalog.find("registry")])
        return super().__enter__()

    def prepare(self) -> Program:
        """Return a registry on a free port."""
        return launching.registry(self.site, launching.Order("registry"))

    @property
    def host(self) -> str:
        """Host and port, the prefix of image names."""
        return self.site.registry

    def requests(self, client: str = "") -> list[Asked]:
        """
        Return every request it has answered so far, in order: method, path and status.

        With *client*, only requests whose user agent starts with it.
        """
        return access_log.read(self.program.log, client)
