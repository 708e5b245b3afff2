"""Container runtimes as sources of image inventories: containerd's API, CRI-O's files, or plain CRI."""
