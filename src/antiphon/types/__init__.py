"""What is said: frozen structs for content, messages, requests, events and results. No I/O."""
