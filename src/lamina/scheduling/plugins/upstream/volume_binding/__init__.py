"""VolumeBinding: finds, reserves and requests volumes for the claims of a pod."""
