"""Package oci."""
