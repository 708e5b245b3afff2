"""Bounded HTTP/1.1 server for few connections, with complete request and response bodies. Independent of pods."""
