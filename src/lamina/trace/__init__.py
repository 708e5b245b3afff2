"""What happened: the records of a run, live or simulated, and the files they are kept in."""
