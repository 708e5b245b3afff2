"""Watched objects as events of the decision loop; shared by every service that decides."""
