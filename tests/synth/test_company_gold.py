"""Gold sets by votes: what the judges see, what their labels decide, and what is left out."""

from __future__ import annotations

import json

import pytest

from ragkit.errors import DataError
from ragkit.files import read_json
from ragkit.synth import company
from ragkit.synth.company.files import Files
from ragkit.synth.company.gold import Pool, drawn
from ragkit.synth.company.questions import Draft
from ragkit.synth.company.search import Library
from ragkit.synth.stages import Rejected

NOT_9 = "The answer must not name tower 9."
QUESTION = "Which tower has the bell?"
TEXTS = {f"d{n}": f"Bell {n} hangs in tower {n}. " * 20 for n in range(1, 6)}
ROWS = {
    key: {"path": f"slack/{key}.json", "title": key, "content": text} for key, text in TEXTS.items()
}


class Judges:
    """Answers of a stage by item, as an author."""

    schemas = read_json(company.PROMPTS / "schemas.json")

    def __init__(self, said):
        self.said, self.asked = said, []

    def answer(self, stage, tasks, check=None, *, wait=True):
        self.asked += [task.item for task in tasks]
        found = [self.said(task) for task in tasks]
        faults = [
            check(t, data) if check and data else "" for t, data in zip(tasks, found, strict=True)
        ]
        return [
            Rejected(stage, t.item, fault) if fault else data
            for t, data, fault in zip(tasks, found, faults, strict=True)
        ]


def draft(kind="project_related", gold=("d1", "d2")):
    data = {"question": QUESTION, "answer": "Both.", "gold": list(gold)}
    facts = ["One.", NOT_9]
    return Draft(kind, 1, tuple(gold), data=data | {"facts": facts})


def corrected(tmp_path, labels, drafts, found=None, answer=None):
    """Return pool, questions that stay and tasks; `labels` are those of documents by judge.

    A document without a label is invalid. `found` are the documents that retrievers found.
    """
    tasks = []

    class Author(Judges):
        def answer(self, stage, given, check=None, *, wait=True):
            assert all(task.item.startswith(f"{stage} ") for task in given)
            tasks.extend(given)
            return super().answer(stage, given, check, wait=wait)

    def said(task):
        if task.item.startswith("answer"):
            return answer or {"answer": "New.", "facts": [NOT_9, "New fact."]}
        own = labels[int(task.item[-1]) - 1]
        if callable(own):
            return own(task)
        rows = [{"key": key, "label": own.get(key, "invalid")} for key in task.given[0]]
        return {"reason": "so", "documents": rows}

    if found is not None:
        kept = {"retrievers": ["by hand"], "found": {QUESTION: found}}
        (tmp_path / "pools.json").write_text(json.dumps(kept))
    pool = Pool(Files(tmp_path, Author(said)), Library(ROWS, vectors=False))
    return pool, pool.correct(drafts), tasks


R, V = "required", "valid"
BOTH = {"d1": R, "d2": R}


def test_a_judge_sees_gold_documents_whole_and_passages_of_others_in_an_order_of_its_own(tmp_path):
    pool, (kept,), tasks = corrected(tmp_path, [BOTH] * 2, [draft()], ["d4", "d1", "d5"])
    assert pool.retrievers == ["by hand"]
    assert [task.item[-1] for task in tasks] == ["1", "2"]
    orders = [task.given[0] for task in tasks]
    assert orders == ["d4 d5 d1 d2".split(), "d4 d1 d5 d2".split()]  # on every machine
    for task in tasks:
        assert task.given[1] == ["d1", "d2"]
        assert task.values["question"] == QUESTION
        parts = task.values["material"].split("\n\n---\n\n")
        for key, part in zip(task.given[0], parts, strict=True):
            head = f"[{key}] slack/{key}.json\n{key}\n\n"
            text = TEXTS[key] if key in ("d1", "d2") else f"...{TEXTS[key][:1500]}..."
            assert part == head + text
    classes = {"d1": R, "d2": R, "d4": "invalid", "d5": "invalid"}
    assert kept.notes == {"classes": classes, "judges": 2}


def test_at_most_ten_other_documents_are_judged(tmp_path):
    rows = {f"e{n}": ROWS["d1"] for n in range(15)}
    pool = Pool(Files(tmp_path, Judges(None)), Library(ROWS | rows, vectors=False))
    kept = {"retrievers": [], "found": {QUESTION: ["e0", "d1", *rows]}}
    (tmp_path / "pools.json").write_text(json.dumps(kept))
    found = pool._pools([draft()])
    assert found == {"project_related-01": ["e0", "e0", *[f"e{n}" for n in range(1, 9)]]}


def test_what_is_found_for_new_questions_joins_what_was_kept(tmp_path):
    other = {"question": "A bell in tower 3?", "gold": ["d3"], "answer": "", "facts": []}
    two = [draft(), Draft("basic", 1, data=other)]
    pool, _, _ = corrected(tmp_path, [{"d1": R, "d2": R, "d3": R}] * 2, two, ["d4"])
    kept = json.loads((tmp_path / "pools.json").read_text())
    assert list(kept["found"]) == ["A bell in tower 3?", QUESTION]
    assert kept["found"][QUESTION] == ["d4"]
    assert kept["found"]["A bell in tower 3?"][0] == "d3"
    assert pool.retrievers == kept["retrievers"] == ["bm25"]


@pytest.mark.parametrize(
    ("labels", "judges", "required", "reason"),
    [
        # the first two call the same documents required, whatever else they call valid
        ([BOTH, BOTH | {"d3": V}, {}], 2, ["d1", "d2"], None),
        # a majority of invalid takes a gold document out, valid does not
        ([{"d1": R, "d2": V}] * 2, 2, ["d1", "d2"], None),
        # a document joins that two of three require
        ([BOTH | {"d3": R}, BOTH, BOTH | {"d3": R}], 3, ["d1", "d2", "d3"], None),
        # two of three make a majority; a gold document stays unless most call it invalid
        ([BOTH, {"d1": R}, {"d1": R}], 3, ["d1"], "from d1, d2 to d1"),
        ([BOTH, {"d1": R}, BOTH], 3, ["d1", "d2"], None),
        ([{"d1": R, "d2": V, "d3": R}, {"d1": R}, {"d2": V, "d3": R}], 3, ["d1", "d2", "d3"], None),
        ([{}, {}, BOTH], 2, [], "from d1, d2 to none"),
        ([BOTH | {"d3": R}] * 2, 2, ["d1", "d2", "d3"], None),
        ([{"d1": R, "d3": R}] * 2, 2, ["d1", "d3"], None),  # two are the fewest
        # in the order in which the first judge saw them
        ([{"d3": R, "d4": R, "d5": R}] * 2, 2, ["d4", "d5", "d3"], None),
    ],
)
def test_votes_decide_the_gold_set(tmp_path, labels, judges, required, reason):
    pool, kept, tasks = corrected(tmp_path, labels, [draft()], ["d3", "d4", "d5"])
    assert sum(task.item.startswith("pool") for task in tasks) == judges
    if reason:
        assert not kept
        (lost,) = pool.lost
        assert (lost.stage, lost.item) == ("pool", "project_related-01")
        assert lost.reason == f"its gold set would be corrected {reason}"
        return
    (one,) = kept
    assert one.data["gold"] == required
    assert one.notes["judges"] == judges
    if required == ["d1", "d2"]:
        assert one.data["answer"] == "Both."
        return
    assert one.notes["gold before"] == ["d1", "d2"]
    assert one.data["answer"] == "New."
    assert one.data["facts"] == [NOT_9, "New fact."]  # what must not be said is there once
    last = tasks[-1]
    material = "\n\n---\n\n".join(pool.library.text(key) for key in required)
    assert last.item == "answer project_related-01"
    assert last.values == {"question": QUESTION, "answer": "Both.", "material": material}
    assert last.given.data["gold"] == required


@pytest.mark.parametrize(
    ("one", "labels", "reason"),
    [
        (("constrained", ("d1",)), {"d1": R, "d2": R}, None),
        (("constrained", ("d1",)), {"d1": R, "d2": R, "d3": R}, "from d1 to d1, d3, d2"),
        (("conflicting_info",), {"d1": R, "d3": R}, "from d1, d2 to d1, d3"),
        (("basic", ("d1",)), {"d1": R, "d3": R}, "from d1 to d1, d3"),
    ],
)
def test_a_type_says_how_many_documents_may_be_required(tmp_path, one, labels, reason):
    pool, kept, _ = corrected(tmp_path, [labels] * 2, [draft(*one)], ["d2", "d3"])
    assert len(kept) == (reason is None)
    wanted = [f"its gold set would be corrected {reason}"] if reason else []
    assert [lost.reason for lost in pool.lost] == wanted


def test_a_question_waits_for_the_judge_whose_answer_is_not_there(tmp_path):
    pool, kept, tasks = corrected(tmp_path, [BOTH, lambda task: None], [draft()], ["d3"])
    assert (kept, pool.lost, len(tasks)) == ([], [], 2)


def test_the_file_of_what_was_found_is_made_and_checked(tmp_path):
    plain = Draft("high_level", 1, data={"question": "Why?", "gold": []})
    pool, _, tasks = corrected(tmp_path, [], [plain])
    assert (pool.retrievers, tasks) == ([], [])
    assert not (tmp_path / "pools.json").exists()
    corrected(tmp_path, [BOTH] * 2, [draft()])
    found = json.loads((tmp_path / "pools.json").read_text())["found"]
    assert {name: set(keys) for name, keys in found.items()} == {QUESTION: set(ROWS)}
    with pytest.raises(DataError, match="stage 'pools', item 'pools'.*no document 'd9'"):
        corrected(tmp_path, [BOTH] * 2, [draft()], ["d3", "d9", "d8"])


def test_questions_stay_in_order_and_those_without_gold_documents_as_they_are(tmp_path):
    plain = Draft("high_level", 1, data={"question": "Why?", "gold": []})
    drafts = [draft(), plain, draft("constrained", ("d1",))]
    pool, kept, tasks = corrected(tmp_path, [{"d1": R, "d2": R}] * 2, drafts, ["d2"])
    assert [one.kind for one in kept] == ["project_related", "high_level", "constrained"]
    assert kept[1] is plain
    assert [task.item for task in tasks[:2]] == [
        "pool project_related-01 judge 1",
        "pool constrained-01 judge 1",
    ]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda keys: [], "no label for {first!r}"),
        (lambda keys: [key for key in keys if key != "d3"], "no label for 'd3'"),
        (lambda keys: [*keys, "d5"], "'d5' is none of the documents"),
        (lambda keys: [*keys, keys[0]], "a document has two labels"),
    ],
)
def test_every_document_gets_one_label(tmp_path, change, reason):
    def wrong(task):
        rows = [{"key": key, "label": R} for key in change(task.given[0])]
        return {"reason": "so", "documents": rows}

    pool, kept, tasks = corrected(tmp_path, [wrong, BOTH, BOTH], [draft()], ["d3"])
    assert not kept
    assert len(tasks) == 2  # one vote decides nothing
    assert [one.reason for one in pool.lost] == [reason.format(first=tasks[0].given[0][0])]


def test_questions_are_drawn_by_type_and_keep_their_order():
    drafts = [Draft(kind, n) for n in range(1, 31) for kind in ("basic", "semantic")]
    found = drawn(drafts, {"semantic": 4, "basic": 2, "high_level": 3}, seed=1)
    assert [one.kind for one in found] == ["semantic"] * 4 + ["basic"] * 2
    # the same on every machine
    assert [one.number for one in found] == [4, 10, 24, 26, 23, 26]
    assert drawn(drafts, {"basic": 2, "semantic": 4}, seed=1) == [*found[4:], *found[:4]]
    assert drawn(drafts, {"semantic": 4}, seed=2) != found[:4]
    # other types draw apart
    both = drawn(drafts, {"basic": 15, "semantic": 15}, seed=1)
    assert [one.number for one in both[:15]] != [one.number for one in both[15:]]
