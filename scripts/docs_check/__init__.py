"""The parts of `make docs-check`: every documented command is run, run on the testbed, or listed with a reason."""
