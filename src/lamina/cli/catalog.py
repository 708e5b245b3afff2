"""``lamina catalog``: what images consist of, collected into files, described, or generated."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from lamina.model.image import Image, Platform
    from lamina.wire.gathering import Gathering

EXAMPLES: Final = """\b
Examples:
  lamina catalog add images.jsonl.zst saved.tar layout/
  lamina catalog show images.jsonl.zst
  lamina catalog generate made.jsonl.zst --images 1000 --seed 7
"""
ADD_EXAMPLES: Final = """\b
Examples:
  docker save nginx:1.27 -o nginx.tar && lamina catalog add images.jsonl nginx.tar
  skopeo copy --all docker://nginx:1.27 oci:nginx:nginx:1.27 && lamina catalog add images.jsonl nginx
  crane manifest nginx@$(crane digest --platform linux/arm64 nginx:1.27) > m.json
  lamina catalog add images.jsonl m.json --name nginx:1.27 --platform linux/arm64
"""


class Suggesting(click.Group):
    """A group that names the nearest command when there is no such one."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Look a command up."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.commands:
            from lamina.model.schema import suggest

            raise click.UsageError(f"there is no command {name!r}: {suggest(name, self.commands)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=Suggesting, epilog=EXAMPLES)
def catalog() -> None:
    """Collect what images consist of, look at it, or make some up."""


@catalog.command(epilog=ADD_EXAMPLES)
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.argument("source", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--name", metavar="REF", default="", help="For images that carry no name.")
@click.option("--platform", metavar="OS/ARCH", help="For images that do not say theirs; default: linux/amd64.")
def add(file: Path, source: tuple[Path, ...], name: str, platform: str | None) -> None:
    """
    Collect the images of each SOURCE into the catalogue FILE, which is made if it is not there.

    A SOURCE is a folder or tar archive in OCI image layout, another catalogue, or a manifest or index as a registry
    serves it. Names move to the image that has them last.
    """
    from lamina.cli.counting import counted
    from lamina.model.errors import InputError, Mistake
    from lamina.trace.writer import atomic_write
    from lamina.wire.catalog_file import encode_catalog, read_catalog
    from lamina.wire.gathering import Gathering
    from lamina.wire.image_sources import read_sources

    _check_name(name)
    asked = _platform(platform)
    gathering = Gathering(names_move=True)
    for image in read_catalog(file) if file.exists() else ():
        gathering.add(image, str(file))
    before, other, absent = len(gathering), 0, 0
    mistakes: list[Mistake] = []
    for path, found in counted(read_sources(source, name, asked), len(source), "sources"):
        mistakes += found.mistakes
        other, absent = other + found.other, absent + found.absent
        for image in found.images:
            where = str(path or "the manifests")
            mistakes += (Mistake(where, problem) for problem in gathering.add(image, where))
    if mistakes:
        raise InputError(mistakes)
    atomic_write(file, encode_catalog(gathering.images(), file.name))
    _tell(file, gathering, len(gathering) - before, other, absent)


def _tell(file: Path, gathering: "Gathering", new: int, other: int, absent: int) -> None:
    click.echo(f"{file}: {len(gathering)} images, {new} of them new")
    for count, words in (
        (gathering.moved, "names moved to another image; what they meant before is still there by digest"),
        (other, "entries are no images (attestations, signatures and the like) and were left out"),
        (absent, "manifests are listed and were not saved"),
    ):
        if count:
            click.echo(f"{count} {words}")


@catalog.command(epilog="\b\nExamples:\n  lamina catalog show images.jsonl.zst -o json")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "output", type=click.Choice(["table", "json", "yaml"]), default="table", show_default=True)
def show(file: Path, output: str) -> None:
    """Describe the catalogue FILE: how large images are, and how much of them is shared."""
    import msgspec

    from lamina.simulator.workloads.catalogue_figures import figures
    from lamina.wire.catalog_file import read_catalog

    told = figures(read_catalog(file))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(told), nl=False)
    else:
        from lamina.cli.catalog_page import show as draw

        draw(told)


@catalog.command(epilog="\b\nExamples:\n  lamina catalog generate made.jsonl.zst --images 1000 --seed 7")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--images", required=True, type=click.IntRange(min=1, max=200_000), help="How many.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Another one, other images.")
def generate(file: Path, images: int, seed: int) -> None:
    """Write a synthetic catalogue to FILE, alike in numbers to public ones: sizes, sharing, and what updates keep."""
    from random import Random

    from lamina.simulator.workloads.generated_catalogue import generate as make
    from lamina.trace.writer import atomic_write
    from lamina.wire.catalog_file import encode_catalog

    made: tuple[Image, ...] = make(images, Random(seed))
    atomic_write(file, encode_catalog(made, file.name))
    click.echo(f"{file}: {len(made)} images; next: lamina catalog show {file}")


def _check_name(name: str) -> None:
    from lamina.model.errors import InputError
    from lamina.model.reference import ReferenceFormatError, parse_reference

    if name:
        try:
            parse_reference(name)
        except ReferenceFormatError as error:
            raise InputError.one("--name", str(error)) from error


def _platform(text: str | None) -> "Platform | None":
    from lamina.model.errors import InputError
    from lamina.wire.gathering import read_platform

    try:
        return None if text is None else read_platform(text)
    except ValueError as error:
        raise InputError.one("--platform", str(error)) from error
