"""Settling: how the façade knows that a scheduler has finished deciding, so that virtual time may move on."""
