"""QosAware: controllers promise an availability; the one that breaks its promise soonest is served first."""
