"""InterPodAffinity: affinity and anti-affinity between pods, within topology domains."""
