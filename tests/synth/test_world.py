import subprocess
import sys
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragkit.errors import UsageError
from ragkit.synth import Stream, World, banks, core, questions
from ragkit.synth.briefs import LEAF, SOURCES, Volume, shares, slug
from ragkit.synth.offline import Offline
from ragkit.synth.pen import Pen


def test_the_same_name_gives_the_same_draws_and_another_gives_others():
    first = [Stream(3, "a", i).draw() for i in range(50)]
    assert first == [Stream(3, "a", i).draw() for i in range(50)]
    assert len(set(first)) == 50
    assert first != [Stream(4, "a", i).draw() for i in range(50)]


@given(st.integers(0, 5000), st.lists(st.floats(0.01, 100), min_size=1, max_size=20))
def test_shares_add_up_and_are_off_by_less_than_one(total, weights):
    parts = shares(total, weights)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - total * weight / sum(weights)) < 1


@given(st.text())
def test_a_slug_is_fit_for_a_path(text):
    assert set(slug(text)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_a_fact_has_one_value_whoever_asks_and_whatever_was_asked_before():
    world, again = World(5, 1000), World(5, 1000)
    topic = banks.topics()["gateway"]
    customers = world.subjects["customer"]
    backwards = {
        (a.key, s.name, scope): again.fact(a, s, scope)
        for s in reversed(again.subjects["customer"])
        for a in topic.attributes
        for scope in s.scopes
    }
    for subject in customers:
        for attribute in topic.attributes:
            for scope in subject.scopes:
                fact = world.fact(attribute, subject, scope)
                assert fact == backwards[attribute.key, subject.name, scope]
                assert fact.value in fact.statement


def test_reporting_lines_lead_to_the_head():
    world = World(5, 3000)
    managers = {p.name: p.manager for p in world.employees}
    assert len(managers) == len(world.employees)
    for name in managers:
        seen = set()
        while managers[name] is not None:
            assert name not in seen
            seen.add(name)
            name = managers[name]
        assert name == world.employees[0].name


@pytest.mark.parametrize("size", [500, 60_000])
def test_names_are_unique(size):
    world = World(1, size)
    names = [s.name for kind in world.subjects.values() for s in kind]
    assert len(set(names)) == len(names)


def test_values_follow_their_notation():
    world, stream = World(1, 100), Stream(1, "values")
    for _ in range(200):
        number, unit = world.value("2.5..3.5:0.25 V", stream).split()
        assert unit == "V"
        assert float(number) in (2.5, 2.75, 3.0, 3.25, 3.5)
        assert world.value("a, b, c", stream) in "abc"
    assert world.value("@person", stream) in world.staff


def test_a_value_beside_all_others_is_refused():
    with pytest.raises(UsageError, match="no value beside"):
        World(1, 100).other_value("a, b", Stream(1), {"a", "b"})


@pytest.mark.parametrize("topic", banks.topics().values(), ids=lambda t: t.key)
def test_topics_are_complete(topic):
    assert len(topic.things) >= 3
    assert len(topic.cases) >= 3
    assert all(len(case) == 3 and all(case) for case in topic.cases)
    assert len(topic.attributes) == 3
    assert len(topic.talk) >= 3
    for attribute in topic.attributes:
        assert all("{v}" in phrase for phrase in attribute.say)
        assert all("{s}" in phrase and phrase[-1] in "?." for phrase in attribute.ask)
        assert len(attribute.ask) >= 3
        assert all("{f}" in phrase and phrase.endswith("?") for phrase in attribute.far)


def test_every_phrase_can_be_filled():
    world = World(2, 400)
    volume = Volume(world, {"slack": 5})
    brief = volume.brief("slack", 0)
    from ragkit.synth.offline import slots

    known = {name: "x" if value is None else value for name, value in slots(world, brief).items()}
    known |= dict.fromkeys("attribute subject Subject label region goods scopes nick".split(), "x")
    pen = Pen(Stream(1), known)
    for rule, lines in banks.sections("glue").items():
        if rule.split(".")[0] in ("class", "drop", "update", "misc") or rule == "mail.facts":
            continue
        for line in lines:
            assert "{" not in pen.fill(line), rule


def test_a_leaf_holds_at_most_500_and_all_documents_are_in_one():
    volume = Volume(World(3, 200_000), {"slack": 60_000, "jira": 900})
    assert max(leaf.count for leaf in volume.leaves["slack"]) <= LEAF
    covered = Counter()
    for leaf in volume.leaves["slack"]:
        covered.update(range(leaf.start, leaf.start + leaf.count))
    assert set(covered.values()) == {1}
    assert len(covered) == 60_000


def test_a_source_without_room_is_refused():
    with pytest.raises(UsageError, match="500 are the most"):
        Volume(World(3, 100), {"hubspot": 5_000_000})
    with pytest.raises(UsageError, match="slack"):
        Volume(World(3, 100), {"slak": 5})


def test_documents_do_not_depend_on_order_or_hash_seed():
    code = (
        "import hashlib,json\n"
        "from ragkit.synth import World\n"
        "from ragkit.synth.briefs import SOURCES, Volume\n"
        "from ragkit.synth.offline import Offline\n"
        "w=World(9,800); v=Volume(w,dict.fromkeys(SOURCES,30)); a=Offline(w)\n"
        "d=[a.write(v.brief(s,i)) for s in SOURCES for i in ORDER]\n"
        "d.sort(key=lambda r:r['doc_id'])\n"
        "print(hashlib.sha256(json.dumps(d).encode()).hexdigest())"
    )
    outcomes = set()
    for seed, order in (("0", "range(30)"), ("1", "range(29,-1,-1)")):
        done = subprocess.run(
            [sys.executable, "-c", code.replace("ORDER", order)],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed, "PATH": ""},
        )
        outcomes.add(done.stdout)
    assert len(outcomes) == 1


def test_every_fact_of_a_brief_is_in_the_document():
    world = World(4, 900)
    volume, author = Volume(world, dict.fromkeys(SOURCES, 60)), Offline(world)
    for source in SOURCES:
        for number in range(60):
            brief = volume.brief(source, number)
            document = author.write(brief)
            for fact in brief.facts:
                assert fact.value in document["content"], (source, number, fact)
            assert "{" not in document["title"]
            assert document["content"].strip() == document["content"]


def test_short_names_mean_one_subject():
    world = World(6, 4000)
    subjects = [s for kind in world.subjects.values() for s in kind]
    shorts = Counter(filter(None, map(world.short, subjects)))
    assert set(shorts.values()) == {1}
    assert len(shorts) > 50
    for subject in subjects:
        assert world.short(subject) in subject.name


def test_projects_can_be_asked_about_by_their_pull_requests_and_tickets():
    world = World(5, 2000)
    author = Offline(world)
    for number in range(12):
        group = core.project(world, number, 24)
        texts = {b.doc_id: questions.visible(author.write(b)).lower() for b in group.briefs}
        source = {b.doc_id: b.source for b in group.briefs}
        gold = Counter(s for d in group.drafts for s in {source[i] for i in d.gold})
        assert gold["github"] >= 3
        assert gold["jira"] >= 3
        for draft in group.drafts:
            for doc_id, strings in draft.needed.items():
                assert all(s.lower() in texts[doc_id] for s in strings), (draft.text, strings)
