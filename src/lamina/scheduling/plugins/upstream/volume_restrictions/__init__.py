"""VolumeRestrictions: claims for one pod only, and disks that cannot be mounted twice."""
