"""A bounded HTTP/1.1 server for one kind of caller: few connections, whole bodies in, whole bodies out. Knows no pods."""
