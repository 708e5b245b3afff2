"""
The few messages of containerd and of CRI that are needed to look at a runtime.

The ``.proto`` files are our own, cut down: same packages, same names, same numbers, and nothing that writes, pulls or
removes. ``scripts/protos.py`` turns them into the modules beside them; those are generated, never edited.
"""
