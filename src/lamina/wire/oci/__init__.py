"""OCI and Docker manifests, indexes, configurations and image layouts as JSON."""
