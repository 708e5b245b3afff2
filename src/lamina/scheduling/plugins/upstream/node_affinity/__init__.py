"""NodeAffinity: node selector and node affinity of pods, and the affinity that a configuration adds to all pods."""
