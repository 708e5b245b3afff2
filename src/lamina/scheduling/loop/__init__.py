"""
The decision loop: scheduling queue, scheduling cycle and binding cycles.

The host feeds events and executes commands.
"""
