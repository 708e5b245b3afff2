"""
The protobuf messages of containerd and CRI that Lamina needs to read a runtime.

The ``.proto`` files are our own reduced versions: same packages, names and numbers, without methods that write, pull or
remove. ``scripts/protos.py`` generates the modules beside them; never edit those.
"""
