import pytest

from ragkit.errors import DataError, UsageError
from ragkit.llm import Prompt, load_prompt
from ragkit.llm.requests import FOLDER

JUDGE = """---
name: judge
version: 2
description: For the tests.
---
--- system ---
You compare.
--- user ---
Fact: {{fact}}

Answer: {{ answer }} and {{fact}} again, { not a hole }
"""
# A changed text without a changed version would mix two prompts under one name.
SHIPPED = {"check": "check@1:6d971796", "repair": "repair@1:efc59aee"}


@pytest.fixture
def write(tmp_path):
    def write(text, name="judge"):
        (tmp_path / f"{name}.md").write_text(text)
        return lambda: load_prompt(name, tmp_path)

    return write


def test_a_prompt_becomes_a_chat(write):
    prompt = write(JUDGE)()
    assert (prompt.name, prompt.version, prompt.placeholders) == ("judge", "2", {"fact", "answer"})
    assert prompt.messages(fact="{{answer}}", answer=3) == [
        {"role": "system", "content": "You compare."},
        {
            "role": "user",
            "content": "Fact: {{answer}}\n\nAnswer: 3 and {{answer}} again, { not a hole }",
        },
    ]


def test_a_request_carries_the_version(write):
    prompt = write(JUDGE)()
    request = prompt.request({"fact": "f", "answer": "a"}, purpose="judge", repeat=1)
    assert request.prompt == prompt.id == f"judge@2:{prompt.sha256[:8]}"
    assert (request.purpose, request.repeat, len(request.messages)) == ("judge", 1, 2)
    plain = write("---\nname: plain\nversion: 1\n---\n\nHello {{x}}\nthere\n", "plain")()
    assert plain.messages(x=1) == [{"role": "user", "content": "Hello 1\nthere"}]


def test_the_id_changes_with_the_text_alone(tmp_path):
    texts = [JUDGE, JUDGE.replace("compare", "contrast"), JUDGE.replace("For the", "Of all")]
    for number, text in enumerate(texts):
        (tmp_path / str(number)).mkdir()
        (tmp_path / str(number) / "judge.md").write_text(text)
    first, second, third = (load_prompt("judge", tmp_path / str(n)).id for n in range(3))
    assert first == third != second


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"fact": "f"}, "needs a value for 'answer'"),
        ({"fact": "f", "answer": None}, "needs a value for 'answer'"),
        ({"fact": "f", "answer": "a", "anwser": "a"}, "did you mean 'answer'"),
    ],
)
def test_placeholders_are_strict(write, values, says):
    with pytest.raises(UsageError, match=says):
        write(JUDGE)().messages(**values)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1"),
        ("hello", "line 1"),
        ("---\nname: judge\n", "line 1"),
        (JUDGE.replace("version: 2\n", ""), "expected the name 'judge' and a version"),
        (JUDGE.replace("version: 2", "version:"), "line 3"),
        (JUDGE.replace("version", "verison"), "line 3"),
        (JUDGE.replace("name: judge", "name: other"), "expected the name 'judge' and a version"),
        (JUDGE.replace("- system -", "- robot -"), "no role 'robot'"),
        (JUDGE.replace("You compare.\n", ""), "empty"),
        ("---\nname: judge\nversion: 1\n---\n", "empty"),
    ],
)
def test_a_malformed_file_is_refused_with_its_line(write, text, says):
    with pytest.raises(DataError, match=says) as caught:
        write(text)()
    assert "judge.md" in caught.value.message


def test_an_unknown_prompt_is_refused(write, tmp_path):
    write(JUDGE)
    with pytest.raises(UsageError, match="did you mean 'judge'"):
        load_prompt("jugde", tmp_path)


def test_every_shipped_prompt_loads_and_its_text_fits_its_version():
    found = {path.stem: load_prompt(path.stem) for path in FOLDER.glob("*.md")}
    assert all(isinstance(prompt, Prompt) for prompt in found.values())
    assert {name: prompt.id for name, prompt in found.items()} == SHIPPED
