"""External formats: Kubernetes JSON, image manifests and file formats, decoded into the model and encoded from it."""
