"""How we decide: events in, commands out. Pure and synchronous; no clock, no network, no randomness of its own."""
