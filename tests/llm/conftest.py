import pytest


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    """No test sees the caller's endpoint, key, ledger or prices."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "RAGKIT_LEDGER", "RAGKIT_PRICES"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("RAGKIT_REPLAY", raising=False)


@pytest.fixture
def path(tmp_path):
    """Where a test has its ledger."""
    return tmp_path / "deep" / "llm.sqlite"


@pytest.fixture
def prices(tmp_path, monkeypatch):
    """Return a function that writes a price file, of a model m unless told otherwise, and names it."""

    def write(text='date = 2025-01-01\ncurrency = "USD"\n[models.m]\ninput = 10\noutput = 100\n'):
        (tmp_path / "prices.toml").write_text(text)
        monkeypatch.setenv("RAGKIT_PRICES", str(tmp_path / "prices.toml"))
        return tmp_path / "prices.toml"

    return write


@pytest.fixture
def endpoint(monkeypatch):
    """Return a function that serves replies on loopback and points the environment at them."""
    from contextlib import ExitStack

    from tests.llm.server import serve

    with ExitStack() as stack:

        def start(answer, environment="OPENAI"):
            server = stack.enter_context(serve(answer))
            monkeypatch.setenv(f"{environment}_BASE_URL", server.url)
            return server

        yield start
