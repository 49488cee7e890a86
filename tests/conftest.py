import pytest


@pytest.fixture
def anyio_backend() -> str:
    """The engine is asyncio only: its HTTP client has no other loop."""
    return "asyncio"
