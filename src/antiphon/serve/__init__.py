"""Models and runs over HTTP: the back end's side, as ASGI apps."""
