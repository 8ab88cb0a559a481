import pytest

from ragkit.errors import DataError, MissingData
from ragkit.llm import dollars, load_prices

HEAD = 'date = 2025-03-04\ncurrency = "USD"\n'


@pytest.fixture
def write(tmp_path):
    def write(text):
        (tmp_path / "prices.toml").write_text(text)
        return tmp_path / "prices.toml"

    return write


def test_a_price_is_per_million_tokens_each_way(write):
    prices = load_prices(write(HEAD + '[models."a-b.1"]\ninput = 2\noutput = 8.5\n'))
    assert prices.cost("a-b.1", 1_000_000, 0) == 2.0
    assert prices.cost("openai:a-b.1", 500_000, 100) == 1.0 + 8.5e-4
    assert prices.date == "2025-03-04"


def test_what_is_not_known_has_no_price(write):
    prices = load_prices(write(HEAD + '[models."m"]\ninput = 0\noutput = 0\n'))
    assert prices.cost("m", 10, 10) == 0.0
    assert prices.cost("m-2025", 10, 10) is None
    assert prices.cost("m", None, 10) is None
    assert prices.cost("m", 10, None) is None


def test_the_environment_names_the_file(write, monkeypatch):
    path = write(HEAD)
    monkeypatch.setenv("RAGKIT_PRICES", str(path))
    assert load_prices().path == str(path)
    monkeypatch.setenv("RAGKIT_PRICES", str(path) + "x")
    with pytest.raises(MissingData, match="no price file"):
        load_prices()


def test_the_packages_file_is_dated_and_in_dollars():
    prices = load_prices()
    assert prices.cost("gpt-4o-mini", 1_000_000, 1_000_000) == pytest.approx(0.75)
    assert prices.date[:2] == "20"
    # The hosted models of the three papers; their open weights have no list price.
    named = "gpt-4o gpt-4o-mini gpt-4.1-2025-04-14 gpt-5.4 text-embedding-3-large gemini-2.0-flash"
    for name in (*named.split(), "claude-3-5-sonnet-20241022", "claude-3-7-sonnet-20250219"):
        assert prices.cost(name, 1_000_000, 0) > 0
    assert prices.cost("Falcon3-10B-Instruct", 1, 1) is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("date = ", "not TOML"),
        ('currency = "USD"', "expected a date"),
        ('date = 2025-01-01\ncurrency = "EUR"', "expected a date"),
        (HEAD + "[models.m]\ninput = 1", "'m' needs input and output"),
        (HEAD + "[models.m]\ninput = 1\noutput = -2", "'m' needs"),
        (HEAD + "[models.m]\ninput = 1\noutput = inf", "'m' needs"),
        (HEAD + '[models.m]\ninput = 1\noutput = "2"', "'m' needs"),
        (HEAD + "[models.m]\ninput = 1\noutput = 2\ncached = 3", "'m' needs"),
        (HEAD + "[models]\nm = 3", "'m' needs"),
    ],
)
def test_a_malformed_file_is_refused(write, text, says):
    with pytest.raises(DataError, match=says):
        load_prices(write(text))


def test_dollars_are_readable():
    assert [dollars(cost) for cost in (None, 0.0, 0.000123456, 12.5, 1234.5)] == [
        "unknown",
        "$0.00",
        "$0.0001235",
        "$12.50",
        "$1,234.50",
    ]
