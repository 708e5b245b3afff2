"""
Families of parity cases about volumes: one for each of the four plugins that read claims and volumes.

Nodes and storage objects have names of their own in each case, because the objects of all cases of a family exist
during the whole recording. Sizes of volumes that compete for a claim differ, as upstream's order among equal ones is
random.
"""

import random

from tests.parity.case_clusters import ClusterTraits, draw_node, draw_placed
from tests.parity.case_objects import ZONE, KubeJson, container_object, pod_object
from tests.parity.storage_cases import (
    OLD_ZONE,
    REGION,
    StorageObjects,
    claim_volume,
    ephemeral_volume,
    in_zones,
    on_hosts,
)

DrawnStorage = tuple[list[KubeJson], list[KubeJson], KubeJson, dict[str, list[KubeJson]]]
TRAITS = ClusterTraits(small=0.0, pods_per_node=0.0, tainted=0.05)
DRIVERS = ("fast.csi", "slow.csi")
ZONES = "abcd"


def _nodes(rng: random.Random, name: str) -> list[KubeJson]:
    return [draw_node(rng, f"{name}-n{number}", TRAITS) for number in range(rng.choice((1, 2, 3, 4, 5, 8, 12, 20)))]


def _names(nodes: list[KubeJson]) -> list[str]:
    return [one["metadata"]["name"] for one in nodes]


def _user(rng: random.Random, number: int, node: str, volumes: list[KubeJson], namespace: str = "default") -> KubeJson:
    """Return a running pod with volumes; the pod under test may have a higher priority."""
    return draw_placed(rng, number, node, TRAITS, volumes=volumes, namespace=namespace, requests={"cpu": "1m"})


def _pod(rng: random.Random, name: str, volumes: list[KubeJson]) -> KubeJson:
    named = [{"name": f"v{number}", **one} for number, one in enumerate(volumes)]
    return pod_object(name, [container_object("c0", {"cpu": "1m"})], volumes=named, priority=rng.choice((0, 0, 0, 50)))


# -- VolumeRestrictions ------------------------------------------------------------------------------------------------


def _disk(rng: random.Random, number: int) -> KubeJson:
    read_only = {"readOnly": True} if rng.random() < 0.4 else {}
    kind = rng.choice(("gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"))
    if kind == "gcePersistentDisk":
        return {kind: {"pdName": f"disk-{number}", **read_only}}
    if kind == "awsElasticBlockStore":
        return {kind: {"volumeID": f"vol-{number}", **read_only}}
    if kind == "iscsi":
        return {kind: {"targetPortal": "10.0.0.1:3260", "iqn": f"iqn.2026-01.x:{number}", "lun": 0, **read_only}}
    monitors = rng.sample(("m1", "m2", "m3"), 2)
    return {kind: {"monitors": monitors, "image": f"image-{number}", "pool": rng.choice(("rbd", "other")), **read_only}}


def volume_restrictions(rng: random.Random, name: str) -> DrawnStorage:
    """Return a pod with disks that other pods use, or with a claim for one pod only."""
    nodes, objects = _nodes(rng, name), StorageObjects(name)
    placed: list[KubeJson] = []
    if rng.random() < 0.65:
        mine = [_disk(rng, number) for number in rng.sample(range(3), rng.choice((1, 1, 2)))]
        for number, node in enumerate(_names(nodes)):
            if rng.random() < 0.8:
                theirs = rng.choice(mine) if rng.random() < 0.4 else _disk(rng, rng.randrange(3))
                placed.append(_user(rng, number, node, [{"name": "v0", **theirs}]))
        return nodes, placed, _pod(rng, name, mine), objects.found
    modes = rng.choice((["ReadWriteOncePod"], ["ReadWriteOncePod"], ["ReadWriteOnce"]))
    claim = objects.bound_claim(access_modes=modes)
    for number in range(rng.choice((0, 1, 1, 2))):
        volume = {"name": "v0", **claim_volume(claim)}
        placed.append(
            _user(rng, number, rng.choice(_names(nodes)), [volume], rng.choice(("default", "default", "other")))
        )
    volumes = [claim_volume(claim)]
    if rng.random() < 0.2:
        volumes.append(claim_volume(f"{name}-missing"))
    return nodes, placed, _pod(rng, name, volumes), objects.found


# -- NodeVolumeLimits --------------------------------------------------------------------------------------------------


def node_volume_limits(rng: random.Random, name: str) -> DrawnStorage:
    """Return a pod with volumes of CSI drivers that can attach few volumes to a node."""
    nodes, objects = _nodes(rng, name), StorageObjects(name)
    for node in _names(nodes):
        if rng.random() < 0.9:
            objects.csi_node(node, {one: rng.choice((None, 0, 1, 1, 2, 2, 3)) for one in DRIVERS if rng.random() < 0.9})
    pool = [objects.bound_claim(driver=rng.choice(DRIVERS)) for _ in range(rng.randint(2, 6))]
    placed = []
    for number in range(round(len(nodes) * rng.choice((0.0, 1.0, 2.0)))):
        claims = rng.sample(pool, rng.choice((1, 1, 2)))
        volumes = [{"name": f"v{place}", **claim_volume(one)} for place, one in enumerate(claims)]
        placed.append(_user(rng, number, rng.choice(_names(nodes)), volumes))
    mine = [claim_volume(one) for one in rng.sample(pool, rng.choice((0, 1, 1, 2)))]
    if rng.random() < 0.15 or not mine:
        mine.append(claim_volume(objects.waiting_claim(objects.storage_class(provisioner=rng.choice(DRIVERS)))))
    if rng.random() < 0.1:
        class_name = objects.storage_class(provisioner=rng.choice(DRIVERS))
        objects.waiting_claim(class_name, name=f"{name}-v{len(mine)}", owner=name)
        mine.append(ephemeral_volume(class_name))
    if rng.random() < 0.3:
        for node in _names(nodes):
            if rng.random() < 0.5:
                objects.attachment(node, rng.choice(DRIVERS))
    return nodes, placed, _pod(rng, name, mine), objects.found


# -- VolumeZone --------------------------------------------------------------------------------------------------------


def volume_zone(rng: random.Random, name: str) -> DrawnStorage:
    """Return a pod with bound volumes of some zones and regions, or with claims that are not bound."""
    nodes, objects = _nodes(rng, name), StorageObjects(name)
    for node in nodes:
        labels = node["metadata"]["labels"]
        if rng.random() < 0.6:
            labels[REGION] = rng.choice(("r1", "r1", "r2"))
        if rng.random() < 0.2 and ZONE in labels:
            labels[OLD_ZONE] = labels.pop(ZONE) if rng.random() < 0.5 else rng.choice(ZONES)
    mine = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        roll = rng.random()
        if roll < 0.9:
            mine.append(claim_volume(objects.bound_claim(labels=_zone_labels(rng))))
        elif roll < 0.94:
            mine.append(claim_volume(objects.bound_claim(volume=f"{name}-gone")))
        elif roll < 0.97:
            mine.append(claim_volume(objects.waiting_claim(objects.storage_class(provisioner="x.csi"))))
        else:
            mine.append(claim_volume(objects.waiting_claim(rng.choice(("", f"{name}-unknown")))))
    return nodes, [], _pod(rng, name, mine), objects.found


def _zone_labels(rng: random.Random) -> dict[str, str]:
    labels = {}
    if rng.random() < 0.85:
        zones = rng.sample(ZONES, rng.choice((1, 1, 2, 3)))
        labels[ZONE if rng.random() < 0.7 else OLD_ZONE] = rng.choice(("__", "__", " __ ")).join(zones)
    if rng.random() < 0.3:
        labels[REGION] = rng.choice(("r1", "r2", "r1__r2"))
    if rng.random() < 0.05:
        labels[ZONE] = rng.choice(("", "a__"))
    return labels


# -- VolumeBinding -----------------------------------------------------------------------------------------------------


def volume_binding(rng: random.Random, name: str) -> DrawnStorage:
    """Return a pod with claims that are bound to volumes of some nodes, or wait for their first consumer."""
    nodes, objects = _nodes(rng, name), StorageObjects(name)
    mine = []
    for place in range(rng.choice((1, 1, 2, 2, 3))):
        roll = rng.random()
        if roll < 0.4:
            mine.append(claim_volume(objects.bound_claim(affinity=_affinity(rng, nodes))))
        elif roll < 0.65:
            mine.append(claim_volume(_static_claim(rng, nodes, objects)))
        elif roll < 0.9:
            mine.append(claim_volume(_provisioned_claim(rng, nodes, objects)))
        elif roll < 0.95:
            class_name = objects.storage_class(provisioner="x.csi", topologies=_topologies(rng))
            if rng.random() < 0.8:
                objects.waiting_claim(class_name, name=f"{name}-v{place}", owner=name if rng.random() < 0.8 else "")
            mine.append(ephemeral_volume(class_name))
        else:
            mine.append(claim_volume(_unusable_claim(rng, objects, name)))
    return nodes, [], _pod(rng, name, mine), objects.found


def _affinity(rng: random.Random, nodes: list[KubeJson]) -> KubeJson | None:
    roll = rng.random()
    if roll < 0.4:
        return on_hosts(rng.sample(_names(nodes), min(len(nodes), rng.choice((1, 2, 5)))))
    if roll < 0.9:
        return in_zones(rng.sample(ZONES, rng.choice((1, 2, 3))))
    return None


def _topologies(rng: random.Random) -> list[KubeJson] | None:
    if rng.random() < 0.3:
        return None
    return [{"matchLabelExpressions": [{"key": ZONE, "values": rng.sample(ZONES, rng.choice((1, 2, 3)))}]}]


def _static_claim(rng: random.Random, nodes: list[KubeJson], objects: StorageObjects) -> str:
    """Return a claim of a class whose volumes exist already."""
    class_name = objects.storage_class()
    for size in rng.sample(range(1, 12), rng.choice((0, 1, 2, 4, 6))):
        objects.free_volume(
            class_name,
            size,
            _affinity(rng, nodes),
            labels={"tier": rng.choice("ab")},
            mode="Block" if rng.random() < 0.1 else "Filesystem",
            access_modes=rng.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadOnlyMany"])),
        )
    selector = {"matchLabels": {"tier": "a"}} if rng.random() < 0.2 else None
    return objects.waiting_claim(class_name, size=rng.randint(1, 8), selector=selector)


def _provisioned_claim(rng: random.Random, nodes: list[KubeJson], objects: StorageObjects) -> str:
    """Return a claim for which a volume can be made on some nodes."""
    tracked = rng.random() < 0.5
    provisioner = "tracked.csi" if tracked else "x.csi"
    class_name = objects.storage_class(provisioner=provisioner, topologies=_topologies(rng))
    for zone in ZONES if tracked else "":
        if rng.random() < 0.7:
            objects.capacity(class_name, zone, rng.randint(1, 12), rng.choice((None, None, 4)))
    selected = rng.choice([*_names(nodes), "gone"]) if rng.random() < 0.1 else ""
    return objects.waiting_claim(class_name, size=rng.randint(1, 8), selected=selected)


def _unusable_claim(rng: random.Random, objects: StorageObjects, name: str) -> str:
    roll = rng.randrange(4)
    if roll == 0:
        return objects.waiting_claim(objects.storage_class(mode="Immediate", provisioner="x.csi"))
    if roll == 1:
        return objects.bound_claim(phase="Lost", volume=f"{name}-lost")
    if roll == 2:
        return objects.bound_claim(deleting=True)
    return f"{name}-missing"
