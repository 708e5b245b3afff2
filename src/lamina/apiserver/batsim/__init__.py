"""Batsim's protocol over ZeroMQ: sockets and child processes at both ends."""
