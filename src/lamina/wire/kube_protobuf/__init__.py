"""Kubernetes objects as protobuf, which clients may send instead of JSON; decoded to the JSON form of the object."""
