"""
The decision core: takes events, returns commands.

Synchronous; it does no I/O, reads no clock and draws no random numbers.
"""
