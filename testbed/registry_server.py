"""
An image registry without a control plane, and what it was asked for.

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
    """A registry over plain HTTP that lets everybody push."""

    def __enter__(self) -> "RegistryServer":
        building.build([catalog.find("registry")])
        return super().__enter__()

    def prepare(self) -> Program:
        """A registry on a port of its own."""
        return launching.registry(self.site, launching.Order("registry"))

    @property
    def host(self) -> str:
        """Host and port, as image names begin."""
        return self.site.registry

    def requests(self, client: str = "") -> list[Asked]:
        """
        Every request it has answered so far, in order: method, path and status.

        With a *client*, only of those who call themselves something that begins so.
        """
        return access_log.read(self.program.log, client)
