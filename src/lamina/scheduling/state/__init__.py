"""The cluster as the scheduler knows it: node columns, assumed and bound pods, nominations, changes, hypothetical views."""
