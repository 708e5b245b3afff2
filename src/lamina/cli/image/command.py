"""``lamina image``: an image's layers, who shares them, and which nodes hold how much of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.cli_command import CliCommand
from lamina.cli.shared_options import output_option
from lamina.cli.standard_input import InputFile, ProfileName

if TYPE_CHECKING:
    from lamina.cli.image.layers_text import NodeHolding
    from lamina.model.image import Image
    from lamina.simulator.workloads import Scenario

EXAMPLES: Final = """\b
Examples:
  lamina image nginx:1.27 --catalog images.jsonl.zst
  lamina image registry.example/img1:1 --scenario examples/founding/scenario.yaml --at 100s
  lamina image sha256:5aa1b0 --catalog images.jsonl.zst -o json
"""


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("ref")
@click.option("--catalog", type=InputFile(), help="A catalog file.")
@click.option("--scenario", type=InputFile(), help="A scenario to run, for what its nodes hold.")
@click.option("--at", metavar="DURATION", help="When to look, such as 90s or 2h; default: at the end of the run.")
@click.option(
    "--profile",
    type=ProfileName(),
    metavar="FILE|NAME",
    help="Scheduler configuration; default: what the scenario asks for.",
)
@click.option("--seed", default=0, show_default=True, help="Of the run.")
@click.option("--platform", metavar="OS/ARCH", default="linux/amd64", show_default=True)
@output_option("table", "json", "yaml")
def image(  # noqa: PLR0913, PLR0917 - one parameter for each option
    ref: str,
    catalog: Path | None,
    scenario: Path | None,
    at: str | None,
    profile: str | None,
    seed: int,
    platform: str,
    output: str,
) -> None:
    """Show the layers of the image REF (a name, an alias, a digest or its beginning), and the nodes that have them."""
    import msgspec

    from lamina.cli.image.layers_text import facts, print_image
    from lamina.simulator.workloads import load_scenario
    from lamina.wire.catalog_file import read_catalog

    if catalog is None and scenario is None:
        raise click.UsageError("say where to look: --catalog FILE, --scenario FILE or both")
    for option, value in (("--at", at), ("--profile", profile)):
        if value is not None and scenario is None:
            raise click.UsageError(f"{option} is for --scenario")
    loaded = load_scenario(scenario, seed) if scenario is not None else None
    images = {one.digest: one for one in (read_catalog(catalog) if catalog is not None else ())}
    images |= {one.digest: one for one in (loaded.images if loaded is not None else ())}
    found = find(ref, tuple(images.values()), platform)
    nodes: list[NodeHolding] | None = None
    seconds: float | None = None
    if loaded is not None and scenario is not None:
        seconds, nodes = _run(loaded, scenario, found, at, profile, seed)
    names = loaded.layer_names if loaded is not None else {}
    told = facts(found, tuple(images.values()), names, nodes, seconds)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(told), nl=False)
    else:
        print_image(told)


def find(ref: str, images: tuple["Image", ...], platform: str) -> "Image":
    """Return the image that is meant. Raises InputError with the nearest name when there is none."""
    from lamina.layers.catalog import Catalog, folded
    from lamina.model.errors import InputError
    from lamina.simulator.workloads.image_suggestions import suggest_image
    from lamina.wire.image_merge import read_platform, written

    try:
        wanted = read_platform(platform)
    except ValueError as error:
        raise InputError.one("--platform", str(error)) from error
    known = Catalog()
    for one in images:
        known.learn(one)
    begins = [one for one in images if ref.startswith("sha256:") and one.digest.startswith(ref)]
    found = begins[0] if len(begins) == 1 else known.find(ref, wanted)
    if found is not None:
        return found
    if begins:
        raise InputError.one("REF", f"{len(begins)} images have digests that begin with {ref}: write more of it")
    others = [written(one.platform) for one in images if folded(ref) in map(folded, one.names)]
    if others:
        raise InputError.one("REF", f"{ref} is there for {', '.join(others)}: say --platform {others[0]}")
    names = [name for one in images for name in one.names]
    raise InputError.one("REF", f"there is no image {ref!r}: {suggest_image(ref, names)}")


def _run(
    scenario: "Scenario", file: Path, wanted: "Image", at: str | None, profile: str | None, seed: int
) -> tuple[float, list["NodeHolding"]]:
    """Run a scenario up to a time and look what the nodes hold of an image then."""
    import msgspec

    from lamina.cli.image.layers_text import holdings
    from lamina.cli.output.run_progress import RunProgress
    from lamina.cli.scenario_profile import chosen_for
    from lamina.model.errors import InputError
    from lamina.simulator.cluster import VirtualCluster
    from lamina.simulator.run import simulate
    from lamina.simulator.workloads import units
    from lamina.trace.trace_records import TraceRecord

    chosen, config = chosen_for(scenario, file, profile)
    scenario = scenario.under(chosen)
    if at is not None:
        try:
            until = units.seconds(at)
        except ValueError as error:
            raise InputError.one("--at", str(error)) from error
        ends = until if scenario.until is None else min(until, scenario.until)
        scenario = msgspec.structs.replace(scenario, until=ends)
    seen: list[VirtualCluster] = []

    with RunProgress(scenario) as running:
        look = running.observe

        def observe(now: float, record: TraceRecord, cluster: VirtualCluster) -> None:
            if look is not None:
                look(now, record, cluster)
            if not seen:
                seen.append(cluster)

        result = simulate(scenario, config, seed=seed, observer=observe)
    ended = result.seconds if at is None or scenario.until is None else scenario.until
    # The first node joins before anything else happens, so the cluster has been seen.
    return ended, holdings(seen[0], wanted)
