"""Gangs and queues: pods that start together or not at all, in the order of fair shares."""
