import pytest


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
