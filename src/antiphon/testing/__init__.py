"""For tests, the users' own too: scripted models, recorded events, faulty transports."""
