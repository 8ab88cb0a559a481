"""The questions of a company: flows, second readers, minimal sets, judges, metadata, the estimate."""

from __future__ import annotations

import json
import re
from collections import Counter
from types import SimpleNamespace

import pytest

from ragkit import datasets
from ragkit.errors import DataError, ModelError, UsageError
from ragkit.llm import Ledger, count_tokens
from ragkit.llm.prices import request_tokens
from ragkit.llm.requests import canonical, validator
from ragkit.synth import company
from ragkit.synth.company import estimate, generate_company
from ragkit.synth.company.documents import Noise
from ragkit.synth.company.export import metadata_questions
from ragkit.synth.company.plan import FORMS, Settings
from ragkit.synth.company.questions import Asker, Draft
from ragkit.synth.company.search import Library
from ragkit.synth.layout import TYPES
from ragkit.synth.stages import AuthorOptions, Guess, Task
from tests.conftest import bytes_of
from tests.synth.company_mock import SIZE, Dying, Mock
from tests.synth.conftest import rows

MADE = (".json", ".jsonl")


@pytest.fixture
def make(page, endpoint, tmp_path, monkeypatch):
    """Return a function that runs the pipeline over a mock, without vectors."""
    monkeypatch.setattr(company, "Library", lambda rows, vectors: Library(rows, vectors=False))

    def run(mock, out="out"):
        endpoint(mock)
        options = AuthorOptions(tmp_path / f"{out}.sqlite")
        return generate_company(page, tmp_path / out, author_options=options, **SIZE)

    return run


def lost_of(folder):
    return {row["item"]: row["reason"] for row in rows(folder / "left_out.jsonl")}


def test_a_whole_company_with_all_types(make, tmp_path):
    mock = Mock()
    found = make(mock)
    out = tmp_path / "out"
    wanted = Settings(**SIZE).wanted
    assert sum(wanted.values()) == 30
    assert min(wanted.values()) > 0
    assert found["questions"] == wanted
    made = rows(out / "enterpriserag_bench" / "questions.jsonl")
    assert [row["question_id"] for row in made] == [f"qst_{n:04d}" for n in range(1, 31)]
    known = {r["doc_id"]: r for r in rows(out / "enterpriserag_bench" / "documents.jsonl")}
    notes = {n["doc_id"]: n for n in rows(out / "document_notes.jsonl")}
    for row in made:
        gold = row["expected_doc_ids"]
        assert row["source_types"] == sorted({known[d]["source_type"] for d in gold})
        low, high = company.questions.FLOWS[row["question_type"]]["gold"]
        assert low <= len(gold) <= high
        kinds = {notes[d]["kind"] for d in gold}
        if row["question_type"] == "miscellaneous":
            assert kinds == {"misc"}
        if row["question_type"] in ("basic", "semantic", "intra_document_reasoning"):
            assert kinds <= {"project", "volume"}
            copied = {n["original"] for n in notes.values()}
            assert not copied & {notes[d]["key"] for d in gold}  # a near-duplicate says it, too
        if row["question_type"] == "completeness":
            assert kinds == {"cluster"}
            assert len({notes[d]["block"] for d in gold}) == 1
        if row["question_type"] == "conflicting_info":
            pair = [notes[d] for d in gold]
            assert pair[1]["original"] == pair[0]["key"]
            assert pair[1]["changed"]
    unknown = [row for row in made if row["question_type"] == "info_not_found"]
    assert all(len(row["answer_facts"]) == 1 and not row["expected_doc_ids"] for row in unknown)
    loaded = datasets.load(str(out))
    assert Counter(loaded.questions["type"]) == {k: n for k, n in wanted.items() if n}
    # A prompt names its item, and no other prompt of the stage names the same.
    with Ledger(tmp_path / "out.sqlite", readonly=True) as book:
        asked = [
            (row.purpose, re.findall("^Item: (.+)$", m["content"], re.M)[0])
            for row in book
            for m in row.plain["messages"]
            if m["role"] == "user"
        ]
    assert [one for one, count in Counter(asked).items() if count > 1] == [
        ("question", "question project_related-01")
    ]


def test_the_estimate_is_within_a_fifth_of_the_ledger(make, page, tmp_path):
    said = estimate(page, tmp_path / "out", **SIZE)[-1]
    assert not (tmp_path / "out").exists()
    foreseen = [int(n.replace(",", "")) for n in re.findall(r"([\d,]+) (?:calls|tokens|out)", said)]
    make(Mock())
    with Ledger(tmp_path / "out.sqlite", readonly=True) as book:
        held = list(book)
    spent = [
        len(held),
        sum(request_tokens(row.plain)[0] for row in held),
        sum(
            count_tokens(json.loads(row.response)["choices"][0]["message"]["content"])
            for row in held
        ),
    ]
    assert foreseen == pytest.approx(spent, rel=0.2)
    # When all is answered, nothing is left to pay.
    options = AuthorOptions(tmp_path / "out.sqlite")
    left = estimate(page, tmp_path / "new", author_options=options, **SIZE)[-1]
    assert "about 0 calls" in left


def test_an_estimate_counts_letters_as_a_model_writes_them(page, tmp_path):
    told = []
    for line in ("Wir prüfen täglich die Größe der Körbe. ", "Wir pruefen taeglich die Groesse. "):
        page.write_text(line * 100, "utf-8")
        said = estimate(page, tmp_path / "out", **SIZE)[-1]
        told.append(int(re.search(r"([\d,]+) out", said)[1].replace(",", "")))
    assert told[0] == pytest.approx(told[1], rel=0.2)


def test_stand_ins_of_an_estimate_fit_the_schemas(page, tmp_path, monkeypatch):
    seen = Counter()

    class Checked(Guess):
        def answer(self, stage, tasks, check=None, **options):
            found = super().answer(stage, tasks, check, **options)
            rules = validator(canonical(self.schemas[stage]))
            faults = [error.message for data in found for error in rules.iter_errors(data)]
            assert not faults, (stage, faults)
            seen[stage] += len(found)
            return found

        def lines(self):
            # Where judges correct a gold set, an answer is written anew; stand-ins correct none.
            asked = dict.fromkeys(("question", "answer", "material"), "Why?")
            self.answer("answer", [Task("answer basic-01", asked)])
            return super().lines()

    monkeypatch.setattr(company, "Guess", Checked)
    estimate(page, tmp_path / "out", **SIZE)
    assert {stage for stage, count in seen.items() if count} == {
        path.stem.partition("-")[0]
        for path in company.PROMPTS.glob("*.md")
        if path.stem not in ("entries", "rules", "tool")  # parts of prompts
    }


def test_what_fails_a_check_is_asked_again_left_out_or_corrected(make, tmp_path):
    """basic-01 fails once, basic-02 twice; the others fail as said."""

    def never(data, nth):
        return {"reason": "no", "ok": False}

    def required(data, nth):
        """Call the first document required that is not."""
        first = min(row["key"] for row in data["documents"] if row["label"] == "invalid")
        documents = [
            row | ({"label": "required"} if row["key"] == first else {})
            for row in data["documents"]
        ]
        return data | {"documents": documents}

    same = {"question": "Who has the key?", "answer": "Ada.", "facts": ["Ada has it."]}
    mock = Mock(
        {
            "validate basic-01": never,
            "validate basic-02": never,
            "validate basic-02 again": never,
            "question basic-03": lambda d, n: d | {"gold": ["nowhere-01"]},
            "question basic-04": lambda d, n: d | same,
            "question basic-05": lambda d, n: d | same,
            "question constrained-01": lambda d, n: d | {"facts": ["Only what is so."]},
            "question high_level-01": lambda d, n: d | {"gold": ["anvil-01"]},
            "question conflicting_info-01": lambda d, n: d | {"gold": d["gold"][:1]},
            "minimal completeness-01": lambda d, n: {"needed": d["needed"][:1]},
            "minimal project_related-01": lambda d, n: {"needed": ["felt-99"]},
            "pool semantic-01 judge 1": required,
            "pool semantic-01 judge 2": required,
            "pool semantic-02 judge 1": required,
            "pool project_related-02 judge 1": required,
            "pool semantic-03 judge 2": lambda d, n: d | {"documents": d["documents"][1:]},
        }
    )
    make(mock)
    out = tmp_path / "out"
    lost, asked = lost_of(out), mock.asked
    assert "An earlier one failed: no" in mock.prompts["question basic-01 again"][0]
    assert asked["validate basic-01 again"] == 1
    assert lost["basic-02 again"] == "no"
    assert "'nowhere-01' is none of the documents above" in lost["question basic-03"]
    assert lost["question basic-05"] == "basic-04 asks this already"
    assert lost["question constrained-01"] == 'no fact begins with "The answer must not"'
    assert lost["question high_level-01"] == "'anvil-01' is none of the documents above"
    assert lost["question conflicting_info-01"] == "1 gold documents: this type has 2 to 2"
    assert lost["completeness-01"] == "1 documents are enough for the answer"
    assert lost["minimal project_related-01"] == "'felt-99' is none of the documents"
    assert lost["semantic-01"].startswith("its gold set would be corrected from ")
    assert "no label for" in lost["pool semantic-03 judge 2"]
    # A third judge is asked where two differ, and only there; here it sides with the second.
    third = {item for item in asked if item.endswith("judge 3")}
    assert third == {"pool semantic-02 judge 3", "pool project_related-02 judge 3"}
    assert "semantic-02" not in lost
    for row in rows(out / "left_out.jsonl"):
        assert all(row[name] for name in ("stage", "item", "reason", "remedy"))
    before = sum(asked.values())
    make(mock)
    assert sum(asked.values()) == before


def test_a_run_that_is_cut_short_pays_for_nothing_twice(make, tmp_path):
    mock, cuts = Mock(), 0
    make(whole := Mock(), "whole")
    for lives in range(1, 400, 35):
        try:
            make(Dying(mock, lives), "cut")
            break
        except ModelError:
            cuts += 1
    assert cuts >= 4
    assert mock.asked == whole.asked
    assert bytes_of(tmp_path / "cut", *MADE) == bytes_of(tmp_path / "whole", *MADE)


def test_a_ledger_and_the_pools_give_the_same_bytes_without_an_endpoint(make, page, tmp_path):
    make(Mock())
    own = tmp_path / "plan"
    own.mkdir()
    (own / "pools.json").write_bytes((tmp_path / "out" / "plan" / "pools.json").read_bytes())
    replay = AuthorOptions(tmp_path / "out.sqlite", replay=True)
    generate_company(page, tmp_path / "again", plan=own, author_options=replay, **SIZE)
    assert bytes_of(tmp_path / "again", *MADE) == bytes_of(tmp_path / "out", *MADE)
    for run in (generate_company, estimate):
        with pytest.raises(UsageError, match="no such folder"):
            run(page, tmp_path / "x", plan=tmp_path / "none", **SIZE)
    assert not (tmp_path / "x").exists()


def test_a_plan_whose_copy_was_cut_short_is_copied_whole(
    make, page, endpoint, tmp_path, monkeypatch
):
    make(Mock())
    options = {"author_options": AuthorOptions(tmp_path / "other.sqlite")}
    options |= SIZE | {"plan": tmp_path / "out" / "plan"}

    def cut(source, target, **how):
        (target / "manifest").mkdir(parents=True)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(company.shutil, "copytree", cut)
        with pytest.raises(KeyboardInterrupt):
            generate_company(page, tmp_path / "cut", **options)
    mock = Mock()
    endpoint(mock)
    generate_company(page, tmp_path / "cut", **options)
    assert {item.split()[0] for item in mock.asked} == {"validate", "minimal", "pool"}
    assert not (tmp_path / "cut" / ".tmp-plan").exists()


def test_a_cluster_has_another_name_than_a_project(make):
    def felt(data, nth):
        return {"clusters": [data["clusters"][0] | {"name": "felt"}, *data["clusters"][1:]]}

    with pytest.raises(ModelError, match="stage 'clusters', item 'clusters': 'felt' comes twice"):
        make(Mock({"clusters": felt}))


def test_a_moved_document_has_a_path_of_its_own():
    entries = {
        f"{folder}-{n}": {"source": "jira", "kind": "volume", "path": f"jira/{folder}/{n}.json"}
        for folder in ("shop", "yard")
        for n in range(40)
    }
    plan = SimpleNamespace(entries=entries, settings=SimpleNamespace(seed=1, duplicates=0))
    noise = Noise(plan, None, dict.fromkeys(entries, "text"))
    noise._shuffle(set())
    noise._move("shop-7", "plausible", "jira/yard/")
    assert noise.moves["shop-7"] == ("plausible", "jira/yard/7-2.json")
    paths = {key: noise.moves.get(key, ("", entry["path"]))[1] for key, entry in entries.items()}
    assert len(set(paths.values())) == 80
    assert len(noise.moves) == 5


def test_an_edited_question_is_checked_again_and_nothing_else(make, tmp_path):
    mock = Mock()
    make(mock)
    file = tmp_path / "out" / "plan" / "question" / "basic-01.json"
    data = json.loads(file.read_text()) | {"question": "Where is the tuning fork kept?"}
    file.write_text(json.dumps(data))
    before = mock.asked.copy()
    make(mock)
    new = mock.asked - before
    assert set(new) == {"validate basic-01", "pool basic-01 judge 1", "pool basic-01 judge 2"}
    file.write_text(json.dumps(data | {"seen": ["nowhere-01"]}))
    with pytest.raises(DataError, match="item 'question basic-01': .*'nowhere-01' is none of the"):
        make(mock)


def test_a_passage_is_where_the_words_of_the_question_are():
    text = "Nothing here. " * 200 + "The copper bell rang twice. " + "Nothing there. " * 200
    row = {"path": "slack/x.json", "title": "X", "content": text}
    found = Library({"x": row}, vectors=False).passage("x", "Who rang the copper bell?", 400)
    assert "The copper bell rang twice." in found
    assert len(found) < 500
    whole = Library({"x": row | {"content": "Short."}}, vectors=False).passage("x", "bell", 400)
    assert "Short." in whole


def test_a_list_names_documents_by_their_keys_whatever_their_metadata_say():
    row = {"path": "slack/d1.json", "title": "d1", "content": "A bell.", "key": "J-1"}
    library = Library({"d1": row}, vectors=False)
    asker = Asker(None, None, None, library)
    assert asker._list(Draft("constrained", 1, listed=("d1",))) == "- d1 (slack/d1.json) d1"


# Metadata


def test_metadata_questions_are_answered_by_metadata_alone():
    def row(doc, source, title, **values):
        form = FORMS[source]["metadata"]
        head = {
            "path": f"{source}/{doc}.json",
            "doc_id": doc,
            "source_type": source,
            "title": title,
        }
        return head | {name: values.get(name, "") for name in form} | {"content": "Ada wrote it."}

    made = metadata_questions(
        {
            "a": row("a", "jira", "Bent key", key="J-1", priority="High", assignee="Ada"),
            "b": row("b", "jira", "Bent key", key="J-2", priority="Low"),
            "c": row("c", "confluence", "Glue", status="draft"),
            "d": row("d", "confluence", "Glue", space="Shop"),  # a title that two have
            "e": row("e", "github", "Felt", number=7, state="open"),
            "f": row(
                "f", "github", "Iron", number=7, merged="2025-01-02"
            ),  # a number that two have
        },
        10,
        seed=1,
    )
    said = {row["expected_doc_ids"][0]: (row["question"], row["gold_answer"]) for row in made}
    assert said == {
        "a": ("Which priority does J-1 have?", "High."),
        "b": ("Which priority does J-2 have?", "Low."),
    }
    assert made[0]["answer_facts"][0].startswith("Priority: ")
    assert [row["question_id"] for row in made] == ["ext_0001", "ext_0002"]


def test_proportions_are_the_papers():
    settings = Settings(documents=1000, questions=500, author="openai:x")
    counts = [settings.wanted[kind] for kind in TYPES]
    assert counts == [175, 125, 40, 40, 30, 20, 20, 20, 10, 20]
    assert settings.drafts("basic") == 210
    mix = Settings(documents=320, questions=150, author="openai:x").mix
    assert sum(mix.values()) == 320
    assert min(mix.values()) >= 12
