"""`lamina demo`: the guided tour."""
