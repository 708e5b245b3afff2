"""`lamina validate`: check the files that Lamina reads."""
