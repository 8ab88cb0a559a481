"""What a company's page, answers, edited files and batches may have wrong, and what is said of it."""

from __future__ import annotations

import json

import pytest

from ragkit.errors import DataError, MissingData, ModelError, UsageError
from ragkit.synth.company import estimate, generate_company
from ragkit.synth.company.plan import PAGE as MOST
from ragkit.synth.stages import AuthorOptions, BatchWritten
from tests.synth.company_mock import PAGE, PEOPLE, Mock, imported, results, words
from tests.synth.conftest import rows

SMALL = {
    "documents": 50,
    "questions": 0,
    "metadata_questions": 4,
    "seed": 5,
    "author": "openai:toy",
}


@pytest.fixture
def make(page, endpoint, tmp_path):
    """Return a function that runs the pipeline over a mock, always in the same folder."""

    def run(mock=None, **more):
        endpoint(mock or Mock())
        options = AuthorOptions(tmp_path / "ledger.sqlite", batch=more.pop("batch", None))
        return generate_company(page, tmp_path / "out", author_options=options, **SMALL | more)

    return run


def left_out(tmp_path):
    return {row["item"]: row for row in rows(tmp_path / "out" / "left_out.jsonl")}


# The page


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"", "the page is empty"),
        (b" \n\t\n", "the page is empty"),
        (b"x" * 2_000_000, f"2,000,000 characters, at most {MOST:,}"),
        (b"\xff\xfe caf\xe9", "is not UTF-8"),
    ],
)
def test_a_page_that_is_no_page_costs_nothing(tmp_path, text, says):
    (tmp_path / "page.md").write_bytes(text)
    for run in (generate_company, estimate):
        with pytest.raises(DataError, match=says):
            run(tmp_path / "page.md", tmp_path / "out", **SMALL)
    assert not (tmp_path / "out").exists()


def test_a_page_that_is_not_there(tmp_path):
    with pytest.raises(MissingData):
        generate_company(tmp_path / "none.md", tmp_path / "out", **SMALL)


def test_a_page_that_contradicts_itself_stops_until_somebody_decides(make, tmp_path):
    said = "founded in 1988, but the founder was born in 1990"
    mock = Mock({"company": lambda data, nth: data | {"contradictions": [said]}})
    with pytest.raises(DataError, match=said) as caught:
        make(mock)
    assert "stage 'company'" in str(caught.value)
    file = tmp_path / "out" / "plan" / "company.json"
    assert str(file) in caught.value.hint
    file.write_text(json.dumps(json.loads(file.read_text()) | {"contradictions": []}), "utf-8")
    assert make(mock)["documents"] == 51
    assert mock.asked["company"] == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"documents": 39},
        {"documents": 3001},
        {"documents": 150, "questions": 150},
        {"documents": 60, "questions": 52},
        {"questions": -1},
        {"seed": -1},
        {"surplus": 0.5},
        {"author": "offline"},
        {"author": "gpt"},
        {"documents": 50.5},
    ],
)
def test_settings_out_of_range(page, tmp_path, wrong):
    with pytest.raises(UsageError):
        generate_company(page, tmp_path / "out", **SMALL | wrong)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_other_settings_is_not_touched(make, page, tmp_path):
    make()
    for other in ({"seed": 6}, {"documents": 51}):
        with pytest.raises(UsageError, match="was begun with"):
            make(**other)
    page.write_text(PAGE + " And violins.", "utf-8")
    with pytest.raises(UsageError, match="sha256 of the page"):
        make()


# Answers


def entry_of(**change):
    def spoil(data, nth):
        return {"documents": [data["documents"][0] | change, *data["documents"][1:]]}

    return spoil


def first_of(kind, **change):
    return lambda data, nth: data | {kind: [data[kind][0] | change, *data[kind][1:]]}


NEEDED = [
    ("company", {"name": "Tern"}, "'overview' is a required property"),
    ("company", lambda d, n: d | {"sources": d["sources"][1:]}, "the sources should be slack,"),
    ("company", first_of("sources", folders=[{"path": "jira/x", "holds": ""}]), "does not lie in"),
    ("company", lambda d, n: d | {"initiatives": d["initiatives"] * 2}, "comes twice"),
    ("people", first_of("people", manager="Zed"), "the manager of Ada Tern, 'Zed', is not in"),
    ("people", first_of("people", manager="Bo Quill"), "is above themselves"),
    ("people", lambda d, n: {"people": d["people"] * 2}, "'Ada Tern' comes twice"),
    (
        "people",
        lambda d, n: {"people": [d["people"][0] | {"name": "Al"}]},
        "the sponsor 'Ada Tern'",
    ),
    (
        "projects",
        first_of("projects", people=["Ada Tern", "Zed"]),
        "anvil: 'Zed' is not in the dir",
    ),
    ("projects", first_of("projects", initiative="Zeal"), "no initiative is called 'Zeal'"),
    ("projects", first_of("projects", name="felt"), "'felt' comes twice"),
    ("projects", first_of("projects", name="../felt"), "does not match"),
    ("topics", first_of("topics", name="anvil"), "'anvil' comes twice"),
    ("topics", first_of("topics", source="fax"), "no source is called 'fax'"),
    ("topics", first_of("topics", documents=41), "more than 40 documents: split it"),
    ("topics", first_of("topics", documents=2), "the topics have 5 documents together"),
    ("manifest anvil", entry_of(key="felt-01"), "should begin with anvil-"),
    ("manifest anvil", entry_of(key="anvil-02-again"), "and not end with -again"),
    ("manifest anvil", lambda d, n: {"documents": [*d["documents"], d["documents"][3]]}, "twice"),
    ("manifest anvil", entry_of(path="slack/../../x.json", source="slack"), "is not a path of"),
    ("manifest anvil", entry_of(path="slack/a\u0007.json", source="slack"), "is not a path of"),
    ("manifest anvil", entry_of(path="fax/x.json", source="fax"), "no source is called 'fax'"),
    ("manifest anvil", entry_of(date="2025-02-30"), "there is no day '2025-02-30'"),
    ("manifest anvil", entry_of(metadata={"colour": "red"}), "has the keys "),
    ("manifest anvil", entry_of(people=["Zed", "Yan"]), "none of Zed, Yan is in the directory"),
    ("manifest anvil", entry_of(people=[]), "none of its people is in the directory"),
    ("manifest anvil", entry_of(reads=["anvil-99"]), "reads 'anvil-99', which is not among"),
    ("manifest anvil", entry_of(reads=["anvil-09"]), "in a circle"),
    (
        "manifest anvil",
        lambda d, n: {"documents": d["documents"][:5]},
        "5 documents, 12 are wanted",
    ),
]


@pytest.mark.parametrize(("item", "change", "says"), NEEDED)
def test_an_answer_that_all_else_needs_ends_the_run(make, tmp_path, item, change, says):
    mock = Mock({item: change})
    with pytest.raises(ModelError) as caught:
        make(mock)
    stage = item.partition(" ")[0]
    assert f"stage {stage!r}, item {item!r}" in caught.value.message
    assert says in caught.value.message
    assert mock.asked[item] == 2  # shown once more what was wrong
    file = tmp_path / "out" / "plan" / f"{item.replace(' ', '/')}.json"
    assert str(file) in caught.value.hint
    assert not file.exists()


@pytest.mark.parametrize("item", ["company", "topics", "manifest anvil"])
def test_what_no_model_manages_can_be_written_by_hand(make, tmp_path, item):
    mock = Mock({item: {"nothing": 1}})
    with pytest.raises(ModelError):
        make(mock)
    file = tmp_path / "out" / "plan" / f"{item.replace(' ', '/')}.json"
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(Mock().play(item, "")), "utf-8")
    before = mock.asked.copy()
    assert make(mock)["documents"] == 51
    assert all(mock.asked[other] == count for other, count in before.items())  # nothing paid twice


def test_an_answer_that_is_mended_when_asked_once_more_is_used(make):
    mock = Mock({"people": lambda data, nth: {"people": data["people"] * (3 - nth)}})
    mock.changes["projects"] = lambda data, nth: data if nth > 1 else {"projects": []}
    assert make(mock)["documents"] == 51
    assert mock.asked["people"] == mock.asked["projects"] == 2


DOCUMENTS = [
    ("document anvil-02", {"content": "Too short."}, "10 characters, at least 200 are wanted"),
    ("document anvil-02", {"content": words("bell", 300) + "\u0007"}, "control characters"),
    (
        "document anvil-02",
        {"content": words("x", 300), "read": ["anvil-01"]},
        "either content or read",
    ),
    ("document anvil-02", {"read": ["felt-01"]}, "'felt-01' does not stand above this entry"),
    ("document anvil-02", {"read": ["anvil-03"]}, "'anvil-03' does not stand above this entry"),
    ("document tuning-02", {"read": ["tuning-01"]}, "nothing to read: write it"),
    ("document anvil-02", {"title": "x"}, "does not fit the schema"),
]


@pytest.mark.parametrize(("item", "change", "says"), DOCUMENTS)
def test_a_document_that_is_no_document_is_left_out_and_named(make, tmp_path, item, change, says):
    found = make(Mock({item: change}))
    row = left_out(tmp_path)[item]
    assert row["stage"] == "document"
    assert says in row["reason"]
    assert row["remedy"]
    key = item.partition(" ")[2]
    assert key not in {note["key"] for note in rows(tmp_path / "out" / "document_notes.jsonl")}
    assert found["kinds"]["project"] + found["kinds"]["volume"] == 45


def test_a_text_that_comes_twice_is_taken_once(make, tmp_path):
    same = {"content": words("the same", 900)}
    make(Mock({"document tuning-03": same, "document tuning-07": same}))
    assert left_out(tmp_path)["document tuning-07"]["reason"] == "this is the text of tuning-03"
    assert "document tuning-03" not in left_out(tmp_path)


def test_a_document_may_read_others_three_times(make, tmp_path):
    def ask(data, nth):
        return {"read": [f"anvil-0{nth}"]} if nth < 5 else data

    mock = Mock({"document anvil-06": ask})
    make(mock)
    prompts = mock.prompts["document anvil-06"]
    assert ["[anvil-03]" in prompt for prompt in prompts] == [False, False, False, True, True]
    assert "You have read enough now." in prompts[3]
    assert mock.asked["document anvil-06"] == 5  # the fourth wish is refused, then it is written
    assert not left_out(tmp_path)


NOISE = [
    ("misfile", lambda d, n: {"path": "slack/nowhere"}, "there is no folder"),
    ("near-duplicate", lambda d, n: d | {"changed": [{"what": "x", "before": "y no", "after": "z"}]}, "the original does not say 'y no'"),
    ("near-duplicate", lambda d, n: d | {"changed": [d["changed"][0] | {"after": "noted nine"}]}, "the document does not say 'noted nine'"),
    ("near-duplicate", lambda d, n: d | {"date": "2024-01-01"}, "it is dated before the original"),
    ("near-duplicate", lambda d, n: d | {"content": "Same."}, "5 characters"),
    ("near-duplicate", lambda d, n: d | {"metadata": {}}, "has the keys"),
]  # fmt: skip


@pytest.mark.parametrize(("stage", "change", "says"), NOISE)
def test_noise_that_cannot_be_is_left_out(make, tmp_path, stage, change, says):
    class All(Mock):
        def play(self, item, prompt):
            data = super().play(item, prompt)
            return change(data, 1) if item.startswith(f"{stage} ") else data

    found = make(All())
    assert found["left_out"]
    reasons = {row["reason"] for item, row in left_out(tmp_path).items() if item.startswith(stage)}
    assert reasons
    assert all(says in reason for reason in reasons)


# Files that were edited


EDITED = [
    ("people.json", "not JSON", "people"),
    ("people.json", '{"people": []}', "people"),
    ("projects.json", '{"projects": [{"name": "x"}]}', "projects"),
    ("manifest/felt.json", '{"documents": []}', "manifest felt"),
    ("document/anvil-01.md", "short", "document anvil-01"),
    ("document/anvil-01.md", "", "document anvil-01"),
]


@pytest.mark.parametrize(("name", "text", "item"), EDITED)
def test_a_file_edited_into_nonsense_is_named_with_stage_and_remedy(
    make, tmp_path, name, text, item
):
    mock = Mock()
    make(mock)
    file = tmp_path / "out" / "plan" / name
    whole = file.read_bytes()
    file.write_text(text, "utf-8")
    before = sum(mock.asked.values())
    with pytest.raises(DataError) as caught:
        make(mock)
    assert f"stage {item.partition(' ')[0]!r}, item {item!r}" in caught.value.message
    assert str(file) in caught.value.message
    assert "delete it" in caught.value.hint
    file.unlink()  # the remedy: what was paid for is in the ledger
    make(mock)
    assert sum(mock.asked.values()) == before
    assert file.read_bytes() == whole


def test_files_that_no_longer_agree_are_named(make, tmp_path):
    make()
    plan = tmp_path / "out" / "plan"
    people = json.loads((plan / "people.json").read_text())
    people["people"] = [row for row in people["people"] if row["name"] != PEOPLE[2]]
    (plan / "people.json").write_text(json.dumps(people))
    with pytest.raises(DataError, match=f"item 'projects'.*{PEOPLE[2]!r} is not in the directory"):
        make()
    (plan / "people.json").unlink()
    projects = json.loads((plan / "projects.json").read_text())
    projects["projects"][1]["name"] = "cork"
    (plan / "projects.json").write_text(json.dumps(projects))
    with pytest.raises(DataError, match="no project, cluster or topic is called 'felt'"):
        make()


def test_what_is_edited_with_sense_is_what_the_next_stage_sees(make, tmp_path):
    def stop(data, nth):
        return {"documents": []}

    with pytest.raises(ModelError):
        make(Mock({"manifest anvil": stop}))
    file = tmp_path / "out" / "plan" / "projects.json"
    data = json.loads(file.read_text())
    data["projects"][0]["description"] = "Everything is made of tin now."
    file.write_text(json.dumps(data))
    mock = Mock()
    make(mock)
    assert "Everything is made of tin now." in mock.prompts["manifest anvil"][0]
    assert "Everything is made of tin now." in mock.prompts["document anvil-01"][0]
    assert not mock.asked["people"]
    text = tmp_path / "out" / "plan" / "document" / "tuning-01.md"
    text.write_text(words("my own", 700))
    make(mock)
    own = [
        r for r in rows(tmp_path / "out" / "documents.jsonl") if r["text"] == words("my own", 700)
    ]
    assert len(own) == 1


# Batches and trouble


def test_results_that_are_missing_foreign_or_twice(make, tmp_path):
    batch, ledger, mock = tmp_path / "b.jsonl", tmp_path / "ledger.sqlite", Mock()

    def write():
        with pytest.raises(BatchWritten):
            make(mock, batch=batch)
        return rows(batch)

    while len(lines := write()) < 10:  # up to the documents
        imported(ledger, results(mock, lines))
    assert len(lines) > 30
    made = results(mock, lines[::2])
    with pytest.raises(DataError, match="no request .somebody-else"):
        imported(ledger, [*made, made[0] | {"custom_id": "somebody-else's"}])
    assert imported(ledger, [*made, *made])[:3] == (len(made), 0, len(made))
    left = {row["custom_id"] for row in write()}
    assert not left & {row["custom_id"] for row in lines[::2]}
    assert {row["custom_id"] for row in lines[1::2]} <= left
