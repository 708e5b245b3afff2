"""Runs whose scheduler speaks Batsim's protocol: a decider as functions on messages, without sockets."""
