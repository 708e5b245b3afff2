"""What we pretend: a cluster in virtual time, driven by the same decision loop as a real one."""
