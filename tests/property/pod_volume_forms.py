"""Claims and disks of pods, drawn and written as in Kubernetes JSON."""

import string

from hypothesis import strategies as st

from lamina.model.pod_volumes import PodVolume

words = st.text(string.ascii_letters + string.digits + "-./:", min_size=1, max_size=8)
IDENTITIES = {"gcePersistentDisk": "pdName", "iscsi": "iqn", "rbd": "image", "azureDisk": "diskURI"}
IDENTITIES |= dict.fromkeys(("awsElasticBlockStore", "cinder", "portworxVolume"), "volumeID")
pod_volumes = st.builds(PodVolume, st.sampled_from(["persistentVolumeClaim", "ephemeral"]), words) | st.builds(
    PodVolume,
    st.sampled_from(sorted(IDENTITIES)),
    words,
    st.booleans(),
    words | st.just(""),
    st.lists(words, max_size=2).map(tuple),
)


def written_volume(volume):
    """A claim, or a disk with the field that identifies disks of its kind."""
    if volume.kind == "persistentVolumeClaim":
        return {"name": "x", volume.kind: {"claimName": volume.source, "readOnly": True}}
    if volume.kind == "ephemeral":
        return {"name": volume.source, volume.kind: {"volumeClaimTemplate": {"spec": {}}}}
    disk = {IDENTITIES[volume.kind]: volume.source, "readOnly": volume.read_only or None, "fsType": "ext4"}
    return {"name": "x", volume.kind: {**disk, "pool": volume.pool, "monitors": list(volume.monitors)}}
