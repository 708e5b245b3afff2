"""The command line: one module per command; each parses, calls one thing and prints."""
