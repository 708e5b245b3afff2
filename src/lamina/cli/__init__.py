"""The command line: one module per command. Each command parses its options, calls one function and prints."""
