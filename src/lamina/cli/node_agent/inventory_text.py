"""Print what a node holds."""

from typing import Any, Final

from rich import box
from rich.table import Table

from lamina.cli.output.screen import Screen, literal
from lamina.model.plain import plural
from lamina.model.quantity import human_bytes

NAME: Final = 60
"""Most characters of an image name to show."""
DIGITS: Final = 12


def print_inventory(told: dict[str, Any]) -> None:
    """Print an inventory as a summary and a table of images."""
    screen = Screen()
    totals, runtime, disk = told["totals"], told["runtime"], told["disk"]
    screen.say(
        f"[bold]{literal(told['node'])}[/bold]  {literal(runtime['name'] or 'unknown runtime')} "
        f"{literal(runtime['version'])}  {literal(told['platform'] or '')}  reuse: {told['reuse']}  {told['observed_at']}"
    )
    screen.say(
        f"{plural(totals['images'], 'image')} of {plural(totals['layers'], 'layer')}, "
        f"{human_bytes(totals['bytes'])} on the disk"
        + (f", {human_bytes(disk['free'])} of {human_bytes(disk['bytes'])} free" if disk["bytes"] else "")
    )
    rates = [f"{word} {human_bytes(rate)}/s" for word, rate in told["rates"].items() if rate]
    if rates:
        screen.say(f"measured on pulls: {', '.join(rates)}")
    for pull in told["pulling"]:
        screen.say(f"pulling {literal(pull['name'] or pull['digest'] or 'an image')}: {_progress(pull)}")
    if told["images"]:
        screen.console.print(_images(screen, told["images"]))


def short_name(names: list[str]) -> str:
    """Return the shortest name that has a tag, cut to `NAME` characters; without tags, the shortest name."""
    tagged = [name for name in names if "@" not in name]
    chosen = min(tagged or names or ["<none>"], key=lambda name: (len(name), name))
    for needless in ("docker.io/library/", "docker.io/"):
        chosen = chosen.removeprefix(needless)
    # Keep the end, which has the tag or digest.
    return chosen if len(chosen) <= NAME else f"...{chosen[3 - NAME :]}"


def _images(screen: Screen, images: list[dict[str, Any]]) -> Table:
    table = Table(box=box.SIMPLE_HEAD if screen.is_terminal else box.ASCII2, pad_edge=False)
    table.add_column("image", no_wrap=True)
    table.add_column("digest", no_wrap=True)
    for column in ("size", "layers", "unpacked"):
        table.add_column(column, justify="right")
    table.add_column("")
    for image in images:
        unpacked = image["unpacked_bytes"]
        others = len([name for name in image["names"] if "@" not in name]) - 1
        table.add_row(
            literal(short_name(image["names"])) + (f" +{others}" if others > 0 else ""),
            image["digest"].partition(":")[2][:DIGITS],
            human_bytes(image["bytes"]),
            str(len(image["layers"])) if image["layers"] else "-",
            "-" if unpacked is None else human_bytes(unpacked),
            "lazy" if image["lazy"] else "",
        )
    return table


def _progress(pull: dict[str, Any]) -> str:
    done, total = pull["done"], pull["total"]
    if not total:
        return f"{human_bytes(done)}"
    return f"{human_bytes(done)} of {human_bytes(total)}, {min(100 * done // total, 100)} %"
