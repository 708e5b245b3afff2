"""VolumeZone: zones and regions of bound volumes."""
