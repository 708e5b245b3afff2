"""Refusals of VolumeRestrictions by code."""

from typing import Final

from lamina.model.decision import Refusal

NAME: Final = "VolumeRestrictions"
REASON_DISK: Final = "node(s) had no available disk"
REASON_CLAIM: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
REFUSALS: Final = {1: Refusal(NAME, (REASON_DISK,)), 2: Refusal(NAME, (REASON_CLAIM,))}
DISK, CLAIM_IN_USE = REFUSALS
