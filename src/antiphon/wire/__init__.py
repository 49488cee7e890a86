"""Bytes on the wire: HTTP and server-sent events. Knows nothing of agents."""
