"""``lamina image``: an image's layers, which other images share them, and which nodes hold how much of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lamina.cli.options.cli_command import CliCommand
from lamina.cli.options.shared_options import output_option
from lamina.cli.options.standard_input import InputFile, ProfileName

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lamina.cli.catalog.cluster_images import ClusterImages
    from lamina.cli.catalog.registry_images import RegistryQueryOptions
    from lamina.cli.image.layers_text import NodeHolding
    from lamina.model.image import Image
    from lamina.simulator.workloads import Scenario

EXAMPLES: Final = """\b
Examples:
  lamina image nginx:1.27 --registry
  lamina image nginx:1.27 --kubeconfig ~/.kube/config
  lamina image nginx:1.28 --kubeconfig ~/.kube/config --registry -o json
  lamina image nginx:1.27 --catalog images.jsonl.zst
  lamina image registry.example/img1:1 --scenario examples/founding/scenario.yaml --at 100s

--registry downloads no layers, only the manifest and the configuration. With --kubeconfig it also finds images that
no node holds yet. --kubeconfig needs read permissions only: those of deploy/rbac/viewer.yaml.
"""

MOST_MISTAKES: Final = 5


@click.command(cls=CliCommand, epilog=EXAMPLES)
@click.argument("ref")
@click.option("--registry", is_flag=True, help="Read the image's layers from the registry in REF.")
@click.option("--kubeconfig", type=click.Path(path_type=Path), help="Read a cluster's node agent reports.")
@click.option("--context", default="", help="Context; without --kubeconfig, of kubectl's kubeconfig.")
@click.option("--catalog", type=InputFile(), help="Read the image from a catalog file.")
@click.option("--scenario", type=InputFile(), help="Run a scenario, and show what its nodes hold.")
@click.option("--at", metavar="DURATION", help="Virtual time to show, such as 90s or 2h; default: the end of the run.")
@click.option(
    "--profile",
    type=ProfileName(),
    metavar="FILE|NAME",
    help="Scheduler configuration; default: the scenario's.",
)
@click.option("--seed", default=0, show_default=True, help="Seed of the run.")
@click.option("--platform", metavar="OS/ARCH", default="linux/amd64", show_default=True)
@click.option("--registries", type=InputFile(), help="How to reach registries; for --registry.")
@click.option("--docker-config", type=InputFile(), help="Docker's config.json; for --registry.")
@click.option("--private", is_flag=True, help="Permit a registry on a private address; for --registry.")
@click.option("--plain-http", is_flag=True, help="Query the registry without TLS; for --registry.")
@output_option("table", "json", "yaml")
def image(  # noqa: PLR0913, PLR0917 - one parameter for each option
    ref: str,
    registry: bool,
    kubeconfig: Path | None,
    context: str,
    catalog: Path | None,
    scenario: Path | None,
    at: str | None,
    profile: str | None,
    seed: int,
    platform: str,
    registries: Path | None,
    docker_config: Path | None,
    private: bool,
    plain_http: bool,
    output: str,
) -> None:
    """
    Show the layers of the image REF, and the nodes that hold them.

    REF is a name, an alias, a digest or its beginning; with --registry, a name.
    """
    import msgspec

    from lamina.cli.catalog.registry_images import RegistryQueryOptions
    from lamina.cli.image import cluster_holdings
    from lamina.cli.image.layers_text import facts, print_image
    from lamina.simulator.workloads import load_scenario
    from lamina.wire.catalog_file import read_catalog

    cluster = kubeconfig is not None or bool(context)
    if catalog is None and scenario is None and not registry and not cluster:
        raise click.UsageError(
            "no source; use --registry, --kubeconfig FILE, --catalog FILE, --scenario FILE, or several of them"
        )
    if cluster and scenario is not None:
        raise click.UsageError("--scenario and --kubeconfig both have nodes; use one of them")
    _belongs("--scenario", scenario is not None, {"--at": at, "--profile": profile})
    asking = {"--registries": registries, "--docker-config": docker_config}
    _belongs("--registry", registry, {**asking, "--private": private or None, "--plain-http": plain_http or None})
    loaded = load_scenario(scenario, seed) if scenario is not None else None
    known = _ask_cluster(kubeconfig, context) if cluster else None
    sources = (
        read_catalog(catalog) if catalog is not None else (),
        known.images if known is not None else (),
        loaded.images if loaded is not None else (),
    )
    images = {one.digest: one for source in sources for one in source}
    if registry:
        found = _ask_registry(ref, platform, RegistryQueryOptions(registries, docker_config, plain_http, private))
        images.setdefault(found.digest, found)
    else:
        found = _known(ref, tuple(images.values()), platform, known)
    nodes: list[NodeHolding] | None = None
    seconds: float | None = None
    others = 0
    if loaded is not None and scenario is not None:
        seconds, nodes = _run(loaded, scenario, found, at, profile, seed)
    elif known is not None:
        nodes, others = cluster_holdings.holdings(known.nodes, images.values(), found)
    names = loaded.layer_names if loaded is not None else {}
    told = facts(found, tuple(images.values()), names, nodes, seconds, others)
    if output == "json":
        click.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
    elif output == "yaml":
        click.echo(msgspec.yaml.encode(told), nl=False)
    else:
        print_image(told)


def _belongs(to: str, given: bool, options: "dict[str, object]") -> None:
    """Raise UsageError for options that need another option."""
    for option, value in options.items():
        if value is not None and not given:
            raise click.UsageError(f"{option} needs {to}")


def _ask_cluster(kubeconfig: Path | None, context: str) -> "ClusterImages":
    """Return the cluster's images, and print the first `MOST_MISTAKES` objects that could not be read."""
    from lamina.cli.catalog import cluster_images

    known = cluster_images.query_cluster(kubeconfig, context, nodes=True)
    for mistake in known.mistakes[:MOST_MISTAKES]:
        click.echo(f"the cluster: {mistake}", err=True)
    if len(known.mistakes) > MOST_MISTAKES:
        click.echo(f"the cluster: {len(known.mistakes) - MOST_MISTAKES} more objects cannot be read", err=True)
    return known


def _ask_registry(ref: str, platform: str, manners: "RegistryQueryOptions") -> "Image":
    """Return the registry's image of this name. If the registry refuses, the command exits with 1."""
    from lamina.cli.catalog.registry_images import query_registries, reference_problem
    from lamina.clients.oci.lookup_results import ImageNotFound
    from lamina.layers.catalog import usual
    from lamina.model.errors import InputError
    from lamina.wire.image_merge import read_platform, written

    problem = f"{ref} is a digest" if ref.startswith("sha256:") else reference_problem(ref)
    if problem:
        raise InputError.one("REF", f"{problem}; --registry needs a name such as nginx:1.27")
    try:
        wanted = read_platform(platform)
    except ValueError as error:
        raise InputError.one("--platform", str(error)) from error
    ((_, answer),) = query_registries([ref], [wanted], manners.rules([ref]), manners.keyring())
    if isinstance(answer, ImageNotFound):
        click.echo(f"{ref}: {answer.detail}", err=True)
        raise click.exceptions.Exit(1)
    # A name without an index has one manifest, whichever platform is requested.
    fitting = [one for one in answer.images if usual(one.platform) == usual(wanted)]
    if not fitting:
        there = ", ".join(dict.fromkeys(written(one.platform) for one in answer.images))
        raise InputError.one("REF", f"{ref} exists for {there}; use --platform {there.partition(',')[0]}")
    return fitting[0]


def _known(ref: str, images: "Sequence[Image]", platform: str, known: "ClusterImages | None") -> "Image":
    """Return the image that REF means, among those with known layers."""
    from lamina.cli.image import cluster_holdings
    from lamina.model.errors import InputError

    try:
        return find(ref, tuple(images), platform)
    except InputError:
        holding = 0 if known is None else cluster_holdings.undescribed(ref, known.nodes, images)
        if not holding:
            raise
    nodes = "1 node holds" if holding == 1 else f"{holding} nodes hold"
    hint = "add --registry to query its registry"
    raise InputError.one("REF", f"{nodes} {ref}, and no node agent has described its layers; {hint}")


def find(ref: str, images: tuple["Image", ...], platform: str) -> "Image":
    """Return the image that *ref* means. Raises InputError with the nearest name if there is none."""
    from lamina.layers.catalog import Catalog, folded
    from lamina.model.errors import InputError
    from lamina.simulator.workloads.scenario_catalog import suggest_image
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
        raise InputError.one("REF", f"{len(begins)} images have digests that begin with {ref}; write more of it")
    others = [written(one.platform) for one in images if folded(ref) in map(folded, one.names)]
    if others:
        raise InputError.one("REF", f"{ref} exists for {', '.join(others)}; use --platform {others[0]}")
    names = [name for one in images for name in one.names]
    raise InputError.one("REF", f"there is no image {ref!r}; {suggest_image(ref, names)}")


def _run(
    scenario: "Scenario", file: Path, wanted: "Image", at: str | None, profile: str | None, seed: int
) -> tuple[float, list["NodeHolding"]]:
    """Run a scenario up to a time, and return what its nodes hold of an image then."""
    import msgspec

    from lamina.cli.image.layers_text import holdings
    from lamina.cli.options.scenario_profile import chosen_for
    from lamina.cli.output.run_progress import RunProgress
    from lamina.model import duration
    from lamina.model.errors import InputError
    from lamina.simulator.cluster import VirtualCluster
    from lamina.simulator.run import simulate
    from lamina.trace.trace_records import TraceRecord

    chosen, config = chosen_for(scenario, file, profile)
    scenario = scenario.under(chosen)
    if at is not None:
        try:
            until = duration.seconds(at)
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
    # The first node joins before any other event, so `observe` has seen the cluster.
    return ended, holdings(seen[0], wanted)
