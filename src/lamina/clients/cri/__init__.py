"""What container runtimes hold: containerd by its own API, CRI-O by its files, any other by CRI."""
