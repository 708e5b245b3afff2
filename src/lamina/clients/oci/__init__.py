"""What images consist of, asked of registries."""
