"""Availability promises of controllers: measured times of their pods, QoS, and time to violation."""
