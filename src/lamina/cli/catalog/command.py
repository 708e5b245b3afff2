"""``lamina catalog``: collect the layers of images into a file, describe the file, or generate one."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile, OutputPath
from lamina.cli.output import interruption
from lamina.model.plain import plural

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.cli.catalog.registry_images import RegistryQueryOptions
    from lamina.clients.oci.registry_config import RegistryConfig
    from lamina.model.image import Image, Platform
    from lamina.wire.image_merge import ImageMerger

EXAMPLES: Final = """\b
Examples:
  lamina catalog add images.jsonl.zst saved.tar layout/
  lamina catalog from-registry images.jsonl.zst nginx:1.27 registry.example/app:2
  lamina catalog from-cluster images.jsonl.zst
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
REGISTRY_EXAMPLES: Final = """\b
Examples:
  lamina catalog from-registry images.jsonl.zst nginx:1.27 redis:7 --platform linux/amd64 --platform linux/arm64
  lamina catalog from-registry images.jsonl.zst ghcr.io/team/app:2 --docker-config ~/.docker/config.json
  lamina catalog from-registry images.jsonl.zst 127.0.0.1:5000/app:1 --private --plain-http
"""
CLUSTER_EXAMPLES: Final = """\b
Examples:
  lamina catalog from-cluster images.jsonl.zst
  lamina catalog from-cluster images.jsonl.zst --context staging --resolve
"""


class SuggestingGroup(click.Group):
    """A click group that suggests the nearest command for an unknown name."""

    command_class = CliCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a subcommand by name. Raises UsageError with the nearest name for an unknown one."""
        name = args[0] if args else ""
        if name and not name.startswith("-") and name not in self.commands:
            from lamina.model.conversion import suggest

            raise click.UsageError(f"there is no command {name!r}; {suggest(name, self.commands)}", ctx)
        return super().resolve_command(ctx, args)


@click.group(cls=SuggestingGroup, epilog=EXAMPLES)
def catalog() -> None:
    """Collect the layers of images into a catalog, describe a catalog, or generate one."""


@catalog.command(epilog=ADD_EXAMPLES)
@click.argument("file", type=OutputPath(path_type=Path, dir_okay=False))
@click.argument("source", nargs=-1, required=True, type=InputFile())
@click.option("--name", metavar="REF", default="", help="Name for images that carry none.")
@click.option("--platform", metavar="OS/ARCH", help="Platform of images that do not record it; default: linux/amd64.")
def add(file: Path, source: tuple[Path, ...], name: str, platform: str | None) -> None:
    """
    Add the images of each SOURCE to the catalog FILE, which is created if it does not exist.

    A SOURCE is a folder or tar archive in OCI image layout, another catalog, or a manifest or index as a registry
    serves it. If two images have the same name, the last one keeps it.
    """
    from lamina.cli.output.progress_bar import with_progress
    from lamina.model.errors import InputError, Mistake
    from lamina.trace.trace_writer import atomic_write
    from lamina.wire.catalog_file import encode_catalog
    from lamina.wire.image_sources import read_sources

    _check_name(name)
    asked = _platform(platform)
    gathering, before = _begun(file)
    other, absent = 0, 0
    mistakes: list[Mistake] = []
    for path, found in with_progress(read_sources(source, name, asked), len(source), "sources"):
        mistakes += found.mistakes
        other, absent = other + found.other, absent + found.absent
        for image in found.images:
            where = str(path or "the manifests")
            mistakes += (Mistake(where, problem) for problem in gathering.add(image, where))
    if mistakes:
        raise InputError(mistakes)
    atomic_write(file, encode_catalog(gathering.images(), file.name))
    interruption.keep(file)
    _print_problems(file, gathering, len(gathering) - before, other, absent)


_registries = click.option(
    "--registries", type=InputFile(), help="File with the permitted registries and how to reach them."
)
_docker_config = click.option(
    "--docker-config", type=InputFile(), help="Docker's config.json with registry credentials."
)


@catalog.command("from-registry", epilog=REGISTRY_EXAMPLES)
@click.argument("file", type=OutputPath(path_type=Path, dir_okay=False))
@click.argument("reference", nargs=-1, required=True)
@click.option(
    "--platform", metavar="OS/ARCH", multiple=True, help="Platform to collect; may be repeated.  [default: linux/amd64]"
)
@_registries
@_docker_config
@click.option("--private", is_flag=True, help="Permit registries on private addresses.")
@click.option("--plain-http", is_flag=True, help="Query the registries without TLS.")
def from_registry(  # noqa: PLR0913, PLR0917 - one argument for each option
    file: Path,
    reference: tuple[str, ...],
    platform: tuple[str, ...],
    registries: Path | None,
    docker_config: Path | None,
    private: bool,
    plain_http: bool,
) -> None:
    """
    Query registries for the layers of each REFERENCE, and add the images to the catalog FILE.

    Only manifests and configurations are downloaded. Prints one line for each image that was not found, writes the
    others, and then exits with 1.
    """
    from lamina.cli.catalog.registry_images import RegistryQueryOptions, reference_problem
    from lamina.model.errors import InputError, Mistake

    mistakes = [Mistake("REFERENCE", problem) for one in reference if (problem := reference_problem(one))]
    platforms = [found for one in platform or ("linux/amd64",) if (found := _platform(one)) is not None]
    if mistakes:
        raise InputError(mistakes)
    manners = RegistryQueryOptions(registries, docker_config, plain_http, private)
    wanted = list(dict.fromkeys(reference))
    gathering, before = _begun(file)
    failed = _ask(gathering, wanted, platforms, manners, manners.rules(wanted))
    _finish(file, gathering, before, failed)


@catalog.command("from-cluster", epilog=CLUSTER_EXAMPLES)
@click.argument("file", type=OutputPath(path_type=Path, dir_okay=False))
@click.option("--kubeconfig", type=InputFile(), help="Kubeconfig of the cluster; default: as kubectl.")
@click.option("--context", default="", help="Context of the kubeconfig.")
@click.option("--resolve", is_flag=True, help="Query registries for images of pods that no node agent has reported.")
@_registries
@_docker_config
def from_cluster(
    file: Path,
    kubeconfig: Path | None,
    context: str,
    resolve: bool,
    registries: Path | None,
    docker_config: Path | None,
) -> None:
    """
    Add the images that node agents have reported to a cluster to the catalog FILE.

    With --resolve, also query registries for the images of pods, with the scheduler's rules: registries that a node
    has pulled from, and those that --registries permits.
    """
    from lamina.cli.catalog import cluster_images
    from lamina.cli.catalog.registry_images import RegistryQueryOptions

    manners = RegistryQueryOptions(registries, docker_config)
    known = cluster_images.query_cluster(kubeconfig, context, pods=resolve)
    gathering, before = _begun(file)
    failed = list(known.mistakes)
    for image in known.images:
        failed += (f"the cluster: {problem}" for problem in gathering.add(image, "the cluster"))
    if known.unknown:
        rules = manners.rules((), from_nodes=True)
        failed += _ask(gathering, known.unknown, known.platforms, manners, rules, known.registries)
    _finish(file, gathering, before, failed)


def _begun(file: Path) -> "tuple[ImageMerger, int]":
    """Read the images that the file already has; return them with their number."""
    from lamina.wire.catalog_file import read_catalog
    from lamina.wire.image_merge import ImageMerger

    gathering = ImageMerger(names_move=True)
    for image in read_catalog(file) if file.exists() else ():
        gathering.add(image, str(file))
    return gathering, len(gathering)


def _ask(
    gathering: "ImageMerger",
    references: "Sequence[str]",
    platforms: "Sequence[Platform]",
    manners: "RegistryQueryOptions",
    rules: "RegistryConfig",
    on_nodes: "Sequence[str]" = (),
) -> list[str]:
    """Add the images that registries return; return a line for each that was not found."""
    from lamina.cli.catalog.registry_images import query_registries
    from lamina.cli.output.progress_bar import with_progress
    from lamina.clients.oci.lookup_results import ImageNotFound

    answers = query_registries(references, platforms, rules, manners.keyring(), on_nodes)
    by_reference = dict(with_progress(answers, len(references), "images"))
    failed = []
    # In the order of the arguments, not of the answers: the same input gives the same file.
    for reference in references:
        answer = by_reference[reference]
        if isinstance(answer, ImageNotFound):
            failed.append(f"{reference}: {answer.detail}")
            continue
        for image in answer.images:
            failed += (f"{reference}: {problem}" for problem in gathering.add(image, reference))
    return failed


def _finish(file: Path, gathering: "ImageMerger", before: int, failed: "Sequence[str]") -> None:
    """Write the catalog and print a line for each image that is missing; exit with 1 if there is one."""
    from lamina.trace.trace_writer import atomic_write
    from lamina.wire.catalog_file import encode_catalog

    for line in failed:
        click.echo(_plain(line), err=True)
    if len(gathering) or not failed:
        atomic_write(file, encode_catalog(gathering.images(), file.name))
        interruption.keep(file)
        _print_problems(file, gathering, len(gathering) - before, 0, 0)
    if failed:
        raise click.exceptions.Exit(1)


def _plain(line: str) -> str:
    """Replace characters that would start another line or control the terminal."""
    return "".join(one if one.isprintable() else "?" for one in line)


def _print_problems(file: Path, gathering: "ImageMerger", new: int, other: int, absent: int) -> None:
    click.echo(f"{file}: {plural(len(gathering), 'image')}, {new} of them new")
    for count, words in (
        (gathering.moved, "names moved to another image; the previous image is kept by digest"),
        (other, "entries are not images (attestations, signatures) and were skipped"),
        (absent, "manifests are listed but not included in the source"),
    ):
        if count:
            click.echo(f"{count} {words}")


@catalog.command(epilog="\b\nExamples:\n  lamina catalog show images.jsonl.zst -o json")
@click.argument("file", type=InputFile())
@output_option("table", "json", "yaml")
def show(file: Path, output: str) -> None:
    """Describe the catalog FILE: sizes of images, and how much of them is shared."""
    import msgspec

    from lamina.simulator.workloads.catalog_statistics import describe_catalog
    from lamina.wire.catalog_file import read_catalog

    told = describe_catalog(read_catalog(file))
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(told), nl=False)
    else:
        from lamina.cli.catalog.statistics_text import print_statistics as draw

        draw(told)


@catalog.command(epilog="\b\nExamples:\n  lamina catalog generate made.jsonl.zst --images 1000 --seed 7")
@click.argument("file", type=OutputPath(path_type=Path, dir_okay=False))
@click.option("--images", required=True, type=click.IntRange(min=1, max=200_000), help="How many.")
@click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Seed of the generated images.")
def generate(file: Path, images: int, seed: int) -> None:
    """Write a synthetic catalog to FILE whose sizes, sharing and update steps follow those of public images."""
    import shlex
    from random import Random

    from lamina.cli.output.command_name import command_name
    from lamina.simulator.workloads.generated_catalog import generate as make
    from lamina.trace.trace_writer import atomic_write
    from lamina.wire.catalog_file import encode_catalog

    _refuse_other_file(file)
    made: tuple[Image, ...] = make(images, Random(seed))
    atomic_write(file, encode_catalog(made, file.name))
    interruption.keep(file)
    click.echo(f"{file}: {plural(len(made), 'image')}; next: {command_name()} catalog show {shlex.quote(str(file))}")


def _refuse_other_file(file: Path) -> None:
    """Raise InputError if *file* has content that is not a catalog; an empty file is accepted."""
    from lamina.model.errors import InputError
    from lamina.wire.catalog_file import BOUNDS, is_catalog
    from lamina.wire.compressed_lines import read_lines

    if not file.exists():
        return
    try:
        _, first = next(read_lines(file, BOUNDS), (1, b""))
    except InputError:
        first = b"not lines"
    if first and not is_catalog(first):
        raise InputError.one(str(file), "exists and is not a catalog; name another file, or remove this one first")


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
    from lamina.wire.image_merge import read_platform

    try:
        return None if text is None else read_platform(text)
    except ValueError as error:
        raise InputError.one("--platform", str(error)) from error
