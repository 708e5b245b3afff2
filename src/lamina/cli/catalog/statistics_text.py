"""Print the statistics of a catalog."""

from typing import Any

from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes


def print_statistics(figures: dict[str, Any]) -> None:
    """Print the figures that `catalog_figures` returned."""
    screen = Screen()
    screen.say(
        f"[bold]{plural(figures['images'], 'image')}[/bold] of {plural(figures['repositories'], 'repository', 'repositories')}, "
        f"{plural(figures['layers'], 'layer')}: {human_bytes(figures['bytes_total'])} in all, "
        f"{human_bytes(figures['bytes_unique'])} stored once each"
    )
    facts = Table(box=None, show_header=False, pad_edge=False)
    for name, what in (
        ("deduplication", "de-duplication: total bytes for each byte stored"),
        ("bytes_shared_by_images", "bytes of images in layers that several images use"),
        ("bytes_shared_by_repositories", "bytes of images in layers that several repositories use"),
        ("layers_of_one_image", "layers that one image uses"),
        ("layers_below_1_mb", "layers below 1 MB"),
        ("unique_bytes_in_layers_above_100_mb", "stored bytes in layers above 100 MB"),
    ):
        value = figures[name]
        shown = "-" if value is None else f"{value:.2f}{screen.times}" if name == "deduplication" else f"{value:.0%}"
        facts.add_row(shown, what)
    updates = figures["updates"]
    if updates["count"]:
        facts.add_row(
            f"{updates['bytes_kept_mean']:.0%}",
            f"bytes that an image keeps from its predecessor in the repository; none in "
            f"{updates['keep_nothing']:.0%} of {updates['count']:,} cases",
        )
    screen.say()
    screen.console.print(facts)
    spread = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    spread.add_column("")
    for column in figures["layers_per_image"]:
        spread.add_column(column, justify="right")
    spread.add_row("layers per image", *(_number(value) for value in figures["layers_per_image"].values()))
    spread.add_row("image size", *(_size(value) for value in figures["image_bytes"].values()))
    screen.say()
    screen.console.print(spread)
    largest = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    for column in ("largest images", "size", "layers"):
        largest.add_column(column, justify="left" if column == "largest images" else "right")
    for image in figures["largest"]:
        largest.add_row(literal(image["image"]), human_bytes(image["bytes"]), str(image["layers"]))
    screen.console.print(largest)


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _size(value: int | None) -> str:
    return "-" if value is None else human_bytes(value)
