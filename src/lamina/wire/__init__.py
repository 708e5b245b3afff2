"""How things look outside: Kubernetes JSON and image manifests, turned into the model and back."""
