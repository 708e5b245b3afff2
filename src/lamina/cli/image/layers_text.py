"""An image as data and as text: its layers from the bottom up, and what each node holds of it."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

import msgspec
from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.digest import Digest
from lamina.model.image import Image
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes
from lamina.simulator.cluster import VirtualCluster
from lamina.wire.image_merge import SHORT, written

MOST_NODES: Final = 20
MOST_NAMES: Final = 4


class NodeHolding(msgspec.Struct, frozen=True):
    """What a node holds of an image."""

    node: str
    whole: bool
    """Whether the node holds the image itself and not only its layers."""
    present: int
    """Bytes of the image that the node need not pull."""
    missing: int
    layers: tuple[int, ...]
    """Layers that the node need not pull, by their index in the image; 0 is the bottom."""
    reported: bool = True
    """Whether there is a report about the node; without one, the node is listed as holding nothing."""


def holdings(cluster: VirtualCluster, image: Image) -> list[NodeHolding]:
    """Return what every node holds of an image, the most first."""
    held = []
    for name, node in cluster.nodes.items():
        lacking = {layer.digest: layer.size for layer in node.store.missing(image)}
        missing = sum(lacking.values())
        layers = tuple(place for place, layer in enumerate(image.layers) if layer.digest not in lacking)
        held.append(NodeHolding(name, image.digest in node.store.images, image.size - missing, missing, layers))
    return most_first(held)


def most_first(nodes: Iterable[NodeHolding]) -> list[NodeHolding]:
    """Sort nodes: those with the whole image first, then by bytes, then those with a report."""
    return sorted(nodes, key=lambda one: (-one.whole, -one.present, -one.reported))


def facts(
    image: Image,
    images: Sequence[Image],
    names: dict[Digest, str],
    nodes: list[NodeHolding] | None,
    seconds: float | None,
    other_nodes: int = 0,
) -> dict[str, Any]:
    """
    Return the image and its holdings as plain data.

    *nodes* is None without a cluster, *seconds* is None unless that cluster was simulated, and *other_nodes*
    counts nodes of other platforms, which cannot run this image.
    """
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
                "nodes": None if nodes is None else sum(place in node.layers for node in nodes),
            }
            for place, layer in enumerate(image.layers)
        ],
        "at_seconds": seconds,
        "nodes": None if nodes is None else [msgspec.structs.asdict(one) for one in nodes],
        "nodes_of_other_platforms": other_nodes,
    }


def print_image(told: dict[str, Any], screen: Screen | None = None) -> None:
    """Print what `facts` returned, by default to standard output."""
    screen = screen or Screen()
    screen.say(
        f"[bold]{literal(_shown_names(told['names']) or told['image'])}[/bold]  {literal(told['platform'])}, "
        f"{human_bytes(told['bytes'])} in {plural(len(told['layers']), 'layer')}"
    )
    screen.say(literal(told["image"]))
    others, nodes = told["images_known"] - 1, told["nodes"]
    layers = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    layers.add_column("layer, bottom first", no_wrap=True)
    layers.add_column("size", justify="right")
    layers.add_column("unpacked", justify="right")
    if others:
        layers.add_column(f"shared with, of {others:,} other image{'' if others == 1 else 's'}", justify="right")
    if nodes is not None:
        layers.add_column(f"on nodes, of {len(nodes):,}", justify="right")
    for layer in told["layers"]:
        unpacked = layer["unpacked_bytes"]
        layers.add_row(
            literal(layer["name"] or layer["digest"][:SHORT]),
            human_bytes(layer["bytes"]),
            "-" if unpacked is None else human_bytes(unpacked),
            *([f"{layer['other_images']:,}"] if others else []),
            *([f"{layer['nodes']:,}"] if nodes is not None else []),
        )
    screen.console.print(layers)
    if told["nodes"] is not None:
        _draw_nodes(screen, told)


def _shown_names(names: list[str]) -> str:
    more = f" and {len(names) - MOST_NAMES} more names" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more


def _draw_nodes(screen: Screen, told: dict[str, Any]) -> None:
    nodes, seconds = told["nodes"], told["at_seconds"]
    whole = sum(node["whole"] for node in nodes)
    some = sum(not node["whole"] and node["present"] > 0 for node in nodes)
    silent = sum(not node["reported"] for node in nodes)
    when = "" if seconds is None else f"at {seconds:,.1f} s: "
    unknown = f", no report from {silent}" if silent else ""
    screen.say(
        f"{when}the whole image on {whole} of {plural(len(nodes), 'node')}, "
        f"some of its bytes on {some}, nothing on {len(nodes) - whole - some - silent}{unknown}"
    )
    if told["nodes_of_other_platforms"]:
        screen.say(f"not listed: {told['nodes_of_other_platforms']} nodes of other platforms")
    drawn = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for column in ("node", "has", "layers", "would pull", ""):
        drawn.add_column(column, justify="left" if column in ("node", "") else "right")
    for node in nodes[:MOST_NODES]:
        drawn.add_row(
            literal(node["node"]),
            _has(node),
            f"{len(node['layers'])} of {len(told['layers'])}" if node["reported"] else "-",
            "nothing" if not node["missing"] else human_bytes(node["missing"]),
            screen.bar(node["present"], told["bytes"], 20),
        )
    if nodes:
        screen.console.print(drawn)
    if len(nodes) > MOST_NODES:
        screen.say(f"and {len(nodes) - MOST_NODES} more nodes; -o json lists all of them")


def _has(node: dict[str, Any]) -> str:
    if not node["reported"]:
        return "no report"
    return "all of it" if node["whole"] else human_bytes(node["present"])
