"""From watched objects to events of the decision core; shared by every service that decides."""
