"""NodeAffinity: node selector and node affinity of pods, and those a configuration adds for all of them."""
