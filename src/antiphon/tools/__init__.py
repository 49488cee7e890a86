"""What can be called: tools, their schemas, and where they come from."""
