"""`lamina explain`: print why a pod got its node, or why it waits."""
