import pytest

from ragkit.errors import DataError, UsageError
from ragkit.llm import load_prompt
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


@pytest.fixture
def write(tmp_path):
    def write(text, name="judge"):
        load_prompt.cache_clear()
        (tmp_path / f"{name}.md").write_text(text)
        return lambda: load_prompt(name, tmp_path)

    return write


def test_a_prompt_becomes_a_chat(write):
    prompt = write(JUDGE)()
    assert (prompt.name, prompt.version, prompt.placeholders) == ("judge", "2", {"fact", "answer"})
    filled = "Fact: {{answer}}\n\nAnswer: 3 and {{answer}} again, { not a hole }"
    system, user = prompt.messages(fact="{{answer}}", answer=3)
    assert system == {"role": "system", "content": "You compare."}
    assert user == {"role": "user", "content": filled}
    plain = write("---\nname: plain\nversion: 1\n---\n\nHello {{x}}\nthere\n", "plain")()
    assert plain.messages(x=1) == [{"role": "user", "content": "Hello 1\nthere"}]


def test_a_request_carries_the_id_which_changes_with_the_text_alone(write):
    prompt = write(JUDGE)()
    request = prompt.request({"fact": "f", "answer": "a"}, purpose="judge", repeat=1)
    assert request.prompt == prompt.id == f"judge@2:{prompt.sha256[:8]}"
    assert (request.purpose, request.repeat, len(request.messages)) == ("judge", 1, 2)
    assert write(JUDGE.replace("For the", "Of all"))().id == prompt.id
    assert write(JUDGE.replace("compare", "contrast"))().id != prompt.id


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
        ("", "expected the name 'judge'"),
        ("hello", "expected the name 'judge'"),
        ("---\nname: judge\n", "expected the name 'judge'"),
        (JUDGE.replace("version: 2\n", ""), "a version"),
        (JUDGE.replace("version: 2", "version:"), "a version"),
        (JUDGE.replace("version", "verison"), "a version"),
        (JUDGE.replace("description", "author"), "a description"),
        (JUDGE.replace("name: judge", "name: other"), "expected the name 'judge'"),
        (JUDGE.replace("- system -", "- robot -"), "no role 'robot'"),
        (JUDGE.replace("You compare.\n", ""), "empty"),
        ("---\nname: judge\nversion: 1\n---\n", "empty"),
    ],
)
def test_a_malformed_file_is_refused(write, text, says):
    with pytest.raises(DataError, match=rf"judge\.md: .*{says}"):
        write(text)()


def test_an_unknown_prompt_is_refused(write, tmp_path):
    write(JUDGE)
    with pytest.raises(UsageError, match="did you mean 'judge'"):
        load_prompt("jugde", tmp_path)


def test_every_shipped_prompt_fits_its_version():
    # A changed text without a changed version would mix two prompts under one name.
    found = {path.stem: load_prompt(path.stem).id for path in FOLDER.glob("*.md")}
    expected = {"check": "check@1:6d971796", "repair": "repair@1:efc59aee"}
    assert found == expected | {"schema": "schema@1:7c66cca5"}
