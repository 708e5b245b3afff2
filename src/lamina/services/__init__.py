"""What we run: one process each, thin. They watch, feed the decision core, and perform what it asks for."""
