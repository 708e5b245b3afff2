"""An image as data and as a page of text: its layers from the bottom up, and what each node has of it."""

from typing import Any, Final

import msgspec
from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.quantity import human_bytes
from lamina.simulator.cluster import VirtualCluster
from lamina.wire.image_merge import SHORT, written

MOST_NODES: Final = 20


class NodeHolding(msgspec.Struct, frozen=True):
    """What a node has of an image."""

    node: str
    whole: bool
    """Whether the node has the image and not only its layers."""
    present: int
    """Bytes of it that need not be pulled."""
    missing: int


def holdings(cluster: VirtualCluster, image: Image) -> list[NodeHolding]:
    """List what every node has of an image, the most first."""
    held = []
    for name, node in cluster.nodes.items():
        missing = sum(layer.size for layer in node.store.missing(image))
        held.append(NodeHolding(name, image.digest in node.store.images, image.size - missing, missing))
    return sorted(held, key=lambda one: (-one.whole, -one.present))


def facts(
    image: Image,
    images: tuple[Image, ...],
    names: dict[Digest, str],
    nodes: list[NodeHolding] | None,
    seconds: float | None,
) -> dict[str, Any]:
    """Put together all there is to say; *nodes* is None when no cluster was looked at."""
    users: dict[Digest, int] = {}
    for one in images:
        for digest in {layer.digest for layer in one.layers}:
            users[digest] = users.get(digest, 0) + 1
    return {
        "image": image.digest,
        "names": list(image.names),
        "platform": written(image.platform),
        "bytes": image.size,
        "images_known": len(images),
        "layers": [
            {
                "digest": layer.digest,
                "name": names.get(layer.digest),
                "bytes": layer.size,
                "unpacked_bytes": layer.unpacked,
                "other_images": users.get(layer.digest, 1) - 1,
            }
            for layer in image.layers
        ],
        "at_seconds": seconds,
        "nodes": None if nodes is None else [msgspec.structs.asdict(one) for one in nodes],
    }


def print_image(told: dict[str, Any]) -> None:
    """Print it."""
    screen = Screen()
    screen.say(
        f"[bold]{literal(', '.join(told['names']) or told['image'])}[/bold]  {literal(told['platform'])}, "
        f"{human_bytes(told['bytes'])} in {len(told['layers'])} layers"
    )
    screen.say(literal(told["image"]))
    layers = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    layers.add_column("layer, bottom first", no_wrap=True)
    for column in ("size", "unpacked", f"shared with, of {told['images_known'] - 1:,} other images"):
        layers.add_column(column, justify="right")
    for layer in told["layers"]:
        unpacked = layer["unpacked_bytes"]
        layers.add_row(
            literal(layer["name"] or layer["digest"][:SHORT]),
            human_bytes(layer["bytes"]),
            "-" if unpacked is None else human_bytes(unpacked),
            f"{layer['other_images']:,}",
        )
    screen.console.print(layers)
    if told["nodes"] is not None:
        _draw_nodes(screen, told)


def _draw_nodes(screen: Screen, told: dict[str, Any]) -> None:
    nodes = told["nodes"]
    whole = sum(node["whole"] for node in nodes)
    some = sum(not node["whole"] and node["present"] > 0 for node in nodes)
    screen.say(
        f"at {told['at_seconds']:,.1f} s: the whole image on {whole} of {len(nodes)} nodes, "
        f"some of its bytes on {some}, nothing on {len(nodes) - whole - some}"
    )
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for column in ("node", "has", "would pull", ""):
        drawn.add_column(column, justify="right" if column in ("has", "would pull") else "left")
    for node in nodes[:MOST_NODES]:
        bar = screen.bar(node["present"], told["bytes"], 20)
        drawn.add_row(
            literal(node["node"]),
            "all of it" if node["whole"] else human_bytes(node["present"]),
            "nothing" if not node["missing"] else human_bytes(node["missing"]),
            bar,
        )
    screen.console.print(drawn)
    if len(nodes) > MOST_NODES:
        screen.say(f"and {len(nodes) - MOST_NODES} more nodes")
