"""Bounded HTTP/1.1 server for requests with complete bodies; it knows neither pods nor services."""
