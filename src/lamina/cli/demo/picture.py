"""
Nodes × layers as a picture: what each node holds, and what it would have to pull.

    L1 300 MB       L2 200 MB   L3 150 MB  L4 100 MB   would pull
    n1  p1  ############### ########## ########   .....       -
    n2      ............... .......... ........   .....  650 MB  6.5 s  ##########
"""

from typing import Final

import msgspec
from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.quantity import human_bytes
from lamina.simulator.cluster import VirtualCluster

LAYERS_WIDTH: Final = 40
NARROW_LAYERS_WIDTH: Final = 16
BAR_WIDTH: Final = 12
NARROW_BAR_WIDTH: Final = 6
NARROWEST: Final = 3


class NodeContents(msgspec.Struct, frozen=True):
    """The layers, pods and bandwidth of a node at one moment."""

    name: str
    pods: tuple[str, ...]
    layers: frozenset[Digest]
    bandwidth: float


def contents(cluster: VirtualCluster) -> tuple[NodeContents, ...]:
    """Return the contents of every node now."""
    return tuple(
        NodeContents(
            name,
            tuple(pod.pod.name for pod in node.pods.values()),
            frozenset(node.store.layers),
            node.spec.bandwidth,
        )
        for name, node in cluster.nodes.items()
    )


def picture(
    screen: Screen, nodes: tuple[NodeContents, ...], images: tuple[Image, ...], wanted: Image, names: dict[Digest, str]
) -> Table:
    """Draw every node against every layer; layers in *wanted* are highlighted."""
    layers = {layer.digest: layer.size for image in images for layer in image.layers}
    largest = sum(layers.values())
    needed = {layer.digest: layer.size for layer in wanted.layers}
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    drawn.add_column("node", no_wrap=True)
    drawn.add_column("runs", no_wrap=True)
    for digest, size in layers.items():
        title = f"{literal(names.get(digest, digest[7:15]))}\n{human_bytes(size)}"
        drawn.add_column(f"[bold]{title}[/bold]" if digest in needed else f"[dim]{title}[/dim]", no_wrap=True)
    drawn.add_column("would\npull", justify="right", no_wrap=True)
    drawn.add_column("takes", justify="right", no_wrap=True)
    drawn.add_column("", no_wrap=True)
    whole = sum(needed.values())
    for node in nodes:
        missing = sum(size for digest, size in needed.items() if digest not in node.layers)
        cells = [_cell(screen, node, digest, size, largest, digest in needed) for digest, size in layers.items()]
        drawn.add_row(
            literal(node.name),
            literal(" ".join(node.pods)) or "[dim]-[/dim]",
            *cells,
            human_bytes(missing) if missing else "nothing",
            f"{missing / node.bandwidth:.1f} s",
            f"[red]{screen.bar(missing, whole, NARROW_BAR_WIDTH if screen.narrow else BAR_WIDTH)}[/red]"
            if missing
            else "",
        )
    return drawn


def _cell(screen: Screen, node: NodeContents, digest: Digest, size: int, largest: int, needed: bool) -> str:
    width = max(NARROWEST, round((NARROW_LAYERS_WIDTH if screen.narrow else LAYERS_WIDTH) * size / largest))
    if digest in node.layers:
        colour = "green" if needed else "dim green"
        return f"[{colour}]{screen.full * width}[/{colour}]"
    return f"[red]{screen.empty * width}[/red]" if needed else f"[dim]{'·' if screen.is_terminal else ' '}[/dim]"
