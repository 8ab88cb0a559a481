"""What can be asked of a document, before it is put into words: one builder an answer type.

A material holds the same question in several wordings, near to the document and far from it, as
sentences and as keywords, with the claims of its answer. LiveRAG's appendix B has three classes of
claims; here a claim is *direct* if it states what is asked for, *useful* if it is about the same
subject and topic, and *useless* if the same document says it about another topic.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache

from ragkit.synth import banks
from ragkit.synth.datamorgana import words
from ragkit.synth.datamorgana.company import Case, Company, Known
from ragkit.synth.pen import cap
from ragkit.synth.streams import Stream

AREAS = {
    "hardware": "our devices",
    "firmware": "the device software",
    "platform": "the servers",
    "app": "the phone program",
    "data": "analysis",
    "support": "help for clients",
    "field": "work outside",
    "manufacturing": "making things",
    "quality": "inspections",
    "security": "protection from intruders",
    "sales": "selling",
    "success": "looking after clients",
    "marketing": "advertising",
    "finance": "money",
    "people": "personnel",
    "office": "the workplace",
    "legal": "law",
    "product": "planning",
}
PARTNERS = 6  # facts of one place that a fact is joined with at most
_OFFERS = (
    re.compile(
        r"Option ([A-Z]\w+) came out cheapest, at ([\d,]+ euros); option ([A-Z]\w+) costs ([\d,]+ euros) and option ([A-Z]\w+) ([\d,]+ euros)"
    ),
    re.compile(
        r"Three offers: ([A-Z]\w+) for ([\d,]+ euros), ([A-Z]\w+) for ([\d,]+ euros), ([A-Z]\w+) for ([\d,]+ euros)"
    ),
)
_ACRONYM = re.compile(r"In this project ([A-Z]\w*) stands for ([^.\n]+)\. Please do not use it")
_PROJECT = re.compile(
    r"\b([A-Z][A-Z-]+\d*) is our attempt to ([^.\n]+)\. It belongs to the initiative ([^.\n]+)\."
)
_INCIDENT = re.compile(r"\b(INC-\d+): what happened and why\s+What happened: ([^.\n]+)\. It lasted")
_OPERATION = re.compile(
    r"\b(Operation [A-Z]\w+) begins on [^.\n]+\. In it, ([^.\n]+)\.\s+"
    r"In the calendar it is called ([^.\n]+)\."
)
_CLASSES = (
    re.compile(
        r"Class (\w+) is (?:checked|visited|looked at) every ([^,.\n]+), class (\w+) every ([^,.\n]+), class (\w+) every ([^,.\n]+)\."
    ),
    re.compile(
        r"The rhythm depends on the class\. (\w+): every ([^.\n]+)\. (\w+): every ([^.\n]+)\. (\w+): every ([^.\n]+)\."
    ),
    re.compile(
        r"Inspection rhythm by class: (\w+) means every ([^,.\n]+), (\w+) every ([^,.\n]+) and (\w+) every ([^,.\n]+)\."
    ),
)
_NICKS = tuple(
    re.compile(pattern)
    for pattern in (
        r"who asked: (?P<name>[^:.\n]+?) is what we call (?P<nick>the [^.\n]+)\.",
        r"(?P<name>(?:[A-Z][\w-]*|&)(?: (?:[A-Z][\w-]*|&))*), that is (?P<nick>the [^,.\n]+), for those who are new\.",
        r"\((?P<name>[^().\n]+?) in one phrase: (?P<nick>the [^).\n]+)\.\)",
        r"On the ramp (?P<name>[^.\n]+?) is only known as (?P<nick>the [^.\n]+)\.",
        r"keeps saying \"(?P<nick>the [^\"\n]+)\" and means (?P<name>[^.\n]+)\.",
        r"In the old list (?P<name>[^.\n]+?) still stands under \"(?P<nick>the [^\"\n]+)\"\.",
    )
)


@dataclass(frozen=True)
class Material:
    """A question in waiting.

    Parameters
    ----------
    kind : str
        The answer type.
    key : tuple of str
        What is asked for; no two questions ask for the same.
    documents : tuple of str
        Those that the answer needs.
    needed : dict of str to tuple of str
        What each of them has to say.
    near, far : tuple of str
        Sentences in the document's words and in others.
    near_keys, far_keys : tuple of str
        Keywords in the same sense, the shorter before the longer.
    direct, useful, useless : tuple of str
        Claims.
    names : frozenset of str
        Words of the names of what is asked about.
    given : tuple of str
        What the question must not give away.
    topic : Topic
    leaning : str
        Who would rather ask this: expert, novice, researcher or journalist.
    spare_keys : tuple of str
        Keywords for when all others, of all materials, are too many.
    shared : bool
        Whether other documents state what is asked for, too.
    """

    kind: str
    key: tuple[str, ...]
    documents: tuple[str, ...]
    needed: dict[str, tuple[str, ...]]
    near: tuple[str, ...]
    far: tuple[str, ...]
    near_keys: tuple[str, ...]
    far_keys: tuple[str, ...]
    direct: tuple[str, ...]
    useful: tuple[str, ...]
    useless: tuple[str, ...]
    names: frozenset[str]
    given: tuple[str, ...]
    topic: banks.Topic
    leaning: str
    spare_keys: tuple[str, ...] = ()
    shared: bool = False


def build(company: Company, pool: list[str], stream: Stream) -> dict[str, list[Material]]:
    """Return the materials of all answer types from the documents of the pool."""
    return {kind: list(builder(company, pool, stream)) for kind, builder in BUILDERS.items()}


# What facts are called


@cache
def term(attribute: banks.Attribute) -> str:
    """Return the attribute as a noun phrase without article: "number of handsets in use"."""
    limits = banks.number_range(attribute.values)
    counted = attribute.name.endswith("s") and not attribute.name.startswith("share")
    if limits and (not limits[4] or counted):
        return f"number of {attribute.name}"
    return attribute.name


def _verb(attribute: banks.Attribute) -> str:
    label = term(attribute)
    single = label.startswith(("number", "share")) or not label.endswith("s")
    return "is" if single else "are"


def _leaning(attribute: banks.Attribute) -> str:
    if attribute.values in ("@person", "@outsider", "@date"):
        return "journalist"
    limits = banks.number_range(attribute.values)
    if limits and limits[4].startswith("%"):
        return "researcher"
    if limits and limits[3]:
        return "expert"
    return "novice"


def _near(fact: Known) -> tuple[str, ...]:
    slot = "{thing}" if fact.kind == "thing" else "{s}"
    asks = [ask.replace(slot, fact.name) for ask in fact.attribute.ask]
    it = f"the {term(fact.attribute)} {fact.at} {fact.name}"
    if fact.attribute.values in ("@person", "@outsider"):
        asks.append(f"Who is {it}?")
    else:
        asks.append(f"What {_verb(fact.attribute)} {it}?")
    return tuple(asks)


_AFTER = re.compile(
    r"\b(about|against|among|at|behind|between|by|for|from|in|of|on|through|to|towards|visit|visiting|with) \{f\}"
)


def roundabout(phrase: str, fact: Known, name: str = "") -> str:
    """Return a roundabout phrase about a fact's subject, or about another of that kind.

    After a preposition the name stands alone; elsewhere it is people who act.
    """
    people = fact.people.replace(fact.name, name) if name else fact.people
    name = name or fact.name
    phrase = phrase.replace("{thing}", name)
    return _AFTER.sub(lambda m: f"{m[1]} {name}", phrase).replace("{f}", people)


def _far(fact: Known) -> tuple[str, ...]:
    return tuple(roundabout(far, fact) for far in fact.attribute.far)


def _names(*texts: str) -> frozenset[str]:
    return frozenset(w for text in texts for w in words.words(text))


def _keys(*parts: str) -> str:
    """Return keywords: the words that carry meaning, each once."""
    return " ".join(dict.fromkeys(w for part in parts for w in part.lower().split() if w))


_NEGATIONS = frozenset(("not", "no", "never", "nobody", "nothing", "none", "without"))


def _bare(text: str, without: str = "") -> str:
    """Return the words of a sentence that carry meaning, in its order, without a name."""
    dropped = _names(without) | words.ASKING
    kept = (w for w in words.words(text) if w in _NEGATIONS or words.content(w))
    return " ".join(w for w in kept if w not in dropped)


def _gist(clause: str) -> str:
    """Return the words of a clause that carry meaning, or all but articles where they are few."""
    bare = _bare(clause)
    if len(bare.split()) > 2:
        return bare
    return " ".join(w for w in words.words(clause) if w not in ("a", "an", "the"))


def _name_keys(fact: Known) -> str:
    return " ".join(w for w in words.words(fact.name) if w not in ("the", "at", "of"))


def _near_keys(fact: Known) -> tuple[str, ...]:
    name = _name_keys(fact)
    label = " ".join(words.content(fact.attribute.name))
    thing = " ".join(words.content(fact.topic.things[len(fact.entity) % len(fact.topic.things)]))
    longer = max(_near(fact)[:-1], key=words.count)
    return (
        _keys(label, name),
        _keys(name, label),
        _keys(name, label, thing),
        _keys(_bare(longer, fact.name), name),
        _keys(_bare(longer, fact.name), name, label),
        _keys(name, _bare(longer, fact.name), label, thing),
    )


_LEAD = re.compile(
    r"\b(who|whom|whose|when|where|why|(?:what|which) (?:day|date|time|sum)|how \w+)\b", re.I
)


def _far_keys(fact: Known, lead: bool = True) -> tuple[str, ...]:
    """Return keywords of the roundabout phrases, whole: cut short they would lose their sense.

    Parameters
    ----------
    fact : Known
    lead : bool
        Whether to begin with the words of asking, such as "how long".
    """
    name, area = _name_keys(fact), _bare(AREAS.get(fact.topic.area, ""))
    found = []
    for far in _far(fact):
        bare = _bare(far, f"{fact.people} people behind")
        asked = _LEAD.search(far)
        first = asked[1] if asked and lead else ""
        if len(bare.split()) > 1:
            found += [_keys(first, bare, name), _keys(name, first, bare)]
        if len(f"{area} {first} {bare}".split()) > 1:
            found += [_keys(area, first, bare, name), _keys(name, area, first, bare)]
    return tuple(found)


def _spare(keys: Callable, fact: Known) -> tuple[str, ...]:
    """Return keywords that name the entity without its part, if that cannot be mistaken."""
    return keys(replace(fact, name=fact.brief)) if fact.brief not in ("", fact.name) else ()


def _shared(*facts: Known) -> bool:
    return any(len(fact.documents) > 1 for fact in facts)


def _context(company: Company, fact: Known, doc_id: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return what else a document says: of the same topic and place (useful), else useless."""
    useful, useless = [], []
    for other in company.by_document[doc_id]:
        if other.key == fact.key and other.scope == fact.scope:
            continue
        same = other.topic is fact.topic and other.subject == fact.subject
        (useful if same else useless).append(other.state())
    for case in company.cases.get(doc_id, ()):
        same = case.topic is fact.topic and case.about.entity == fact.entity
        (useful if same else useless).append(f"It was also noted that {case.problem}.")
    return tuple(dict.fromkeys(useful)), tuple(dict.fromkeys(useless))


def _singles(company: Company, pool: list[str]) -> Iterable[tuple[str, Known]]:
    for doc_id in pool:
        for fact in company.by_document.get(doc_id, ()):
            yield doc_id, fact


# The answer types


def _factoid(company: Company, pool: list[str], stream: Stream):
    for doc_id, fact in _singles(company, pool):
        useful, useless = _context(company, fact, doc_id)
        yield Material(
            "factoid",
            ("fact", fact.key, fact.entity, fact.scope),
            (doc_id,),
            {doc_id: (fact.value,)},
            _near(fact),
            _far(fact),
            _near_keys(fact),
            _far_keys(fact),
            (fact.state(),),
            useful,
            useless,
            _names(fact.name),
            (fact.value,),
            fact.topic,
            _leaning(fact.attribute),
            _spare(_near_keys, fact) + _spare(_far_keys, fact),
            _shared(fact),
        )


def _yes_no(company: Company, pool: list[str], stream: Stream):
    for doc_id, fact in _singles(company, pool):
        attribute = fact.attribute
        label, where = term(attribute), f"{fact.at} {fact.name}"
        true = stream.chance(0.5)
        limits = banks.number_range(attribute.values)
        other = _other(company, fact, stream)
        if other is None:
            continue
        if limits and stream.chance(0.6):
            value = float(fact.value.split()[0].replace(",", ""))
            unit = fact.value.partition(" ")[2]
            low, high, step, decimals, _ = limits
            line = stream.between(1, 4) * max(step, 0.05 * (high - low))
            above = stream.chance(0.5)
            mark = value - line if above == true else value + line
            if mark <= 0 or f"{mark:,.{decimals}f}" == f"{value:,.{decimals}f}":
                continue
            said = f"{mark:,.{decimals}f} {unit}".strip()
            more, rather = ("more than", "above") if above else ("less than", "below")
            near = (
                f"Is the {label} {where} {rather} {said}?",
                f"Does the {label} {where} come to {more} {said}?",
                f"{cap(where)}, is the {label} {more} {said}?",
                f"Am I right that the {label} {where} is {rather} {said}?",
            )
            tails = (f"is it {more} {said}?", f"would it be {rather} {said}?")
            keys = f"{more} {said}"
        else:
            said = fact.value if true else other
            near = (
                f"Is {said} the {label} {where}?",
                f"Is it correct that the {label} {where} {_verb(attribute)} {said}?",
                f"The {label} {where}: {said}, yes or no?",
                f"{cap(where)}, {_verb(attribute)} the {label} {said}?",
            )
            if not re.match(r"(it|they|we)\b", fact.statement) and fact.value in fact.statement:
                clause = fact.statement.replace(fact.value, said)
                near += (
                    f"Is it true that {clause} {where}?",
                    f"{cap(where)}, is it true that {clause}?",
                )
            tails = (f"is it {said}?", f"would {said} be right?", f"{said}, perhaps?")
            keys = said
        far = tuple(f"{f.rstrip('?.')}: {tail}" for f in _far(fact) for tail in tails)
        useful, useless = _context(company, fact, doc_id)
        yield Material(
            "yes/no",
            ("yes/no", fact.key, fact.entity, fact.scope),
            (doc_id,),
            {doc_id: (fact.value,)},
            near,
            far,
            tuple(_keys(k, keys) for k in _near_keys(fact)),
            tuple(_keys(k, keys) for k in _far_keys(fact, lead=False)),
            (f"{'Yes' if true else 'No'}: {words.small(fact.state(), _names(fact.name))}",),
            useful,
            useless,
            _names(fact.name, said),
            (),
            fact.topic,
            _leaning(attribute),
            tuple(
                _keys(k, keys)
                for k in _spare(_near_keys, fact) + _spare(lambda f: _far_keys(f, False), fact)
            ),
            _shared(fact),
        )


def _other(company: Company, fact: Known, stream: Stream) -> str | None:
    """Return a value that the attribute has elsewhere, other than the fact's own."""
    values = sorted(_values(company)[fact.key] - {fact.value})
    return stream.pick(values) if values else None


def _values(company: Company) -> dict[str, set[str]]:
    if not hasattr(company, "_values"):
        found: dict[str, set[str]] = defaultdict(set)
        for fact in company.facts:
            found[fact.key].add(fact.value)
        company._values = found
    return company._values


def _definition(company: Company, pool: list[str], stream: Stream):
    for doc_id, fact in _singles(company, pool):
        attribute = fact.attribute
        statement = fact.statement.replace(fact.value, "{v}")
        # A value is no definition: the document has to say what the term is about.
        if statement not in _explaining() or fact.statement.lower() not in company.lower[doc_id]:
            continue
        name, label = fact.name, attribute.name
        verb = "does" if _verb(attribute) == "is" else "do"
        near = (
            f"What {verb} '{label}' [mean|signify|stand for] {fact.at} {name}?",
            f"What is [meant|understood] by the {label} {fact.at} {name}?",
            f"Define the {label} {fact.at} {name}.",
            f"How is '{label}' [defined|understood|to be read] {fact.at} {name}?",
            f"What is the [definition|meaning|sense] of {label} {fact.at} {name}?",
            f"Explain the [term|expression|words] '{label}' as used {fact.at} {name}.",
            f"{cap(label)} {fact.at} {name}: what is that?",
            f"What do people [mean|have in mind] when they [speak of|mention] the {label} {fact.at} {name}?",
            f"{cap(fact.at)} {name}, what [exactly|precisely] is the {label}?",
            f"[Somebody|A colleague] [mentioned|spoke of] the {label} {fact.at} {name}. What is [that|it supposed to be]?",
        )
        word = _name_keys(fact)
        brief = " ".join(w for w in words.words(fact.brief) if w not in ("the", "at", "of"))
        keys, spare = (
            (_keys(label, "meaning", w), _keys("define", label, w), _keys(w, label, "definition"))
            for w in (word, brief)
        )
        keys += (
            _keys(f"what is {label}", word),
            _keys("meaning of term", label, "as used by", word),
            _keys(word, "glossary", label, "definition and meaning"),
        )
        useful, useless = _context(company, fact, doc_id)
        direct = f"{cap(fact.at)} {fact.subject}, '{label}' refers to this: {fact.statement}."
        yield Material(
            "definition",
            ("term", fact.key, fact.entity, fact.scope),
            (doc_id,),
            {doc_id: (fact.value, fact.statement)},
            near,
            near,
            keys,
            keys,
            (direct,),
            useful,
            useless,
            _names(name),
            (fact.value,),
            fact.topic,
            _leaning(attribute),
            spare,
            _shared(fact),
        )
    for doc_id in pool:
        text = company.text(doc_id)
        for pattern, make in _TERMS:
            for match in pattern.finditer(text):
                yield make(doc_id, match)
    yield from _classes(company, pool)
    yield from _called(company, pool)


@cache
def _explaining() -> frozenset[str]:
    """Return the statements, with {v} for the value, that explain their term."""
    path = banks.FOLDER.parent / "datamorgana" / "terms.md"
    return frozenset(path.read_text(encoding="utf-8").splitlines()[1:])


def _acronym(doc_id: str, match: re.Match) -> Material:
    short, long = match.groups()
    near = (
        f"What does {short} stand for in the project?",
        f"What is the meaning of {short}?",
        f"{short}: what is that?",
        f"Which words hide behind the letters {short} in this project?",
    )
    keys = (f"{short.lower()} stands for", f"{short.lower()} meaning", f"what is {short.lower()}")
    keys += (f"{short.lower()} project abbreviation meaning stands for which words",)
    claim = f"{short} stands for {long}."
    return _plain_term(doc_id, short, near, keys, claim, (short, long), (), long)


def _project(doc_id: str, match: re.Match) -> Material:
    code, goal, initiative = match.groups()
    near = (
        f"What is {code}?",
        f"What does the code name {code} mean?",
        f"What lies behind the name {code}?",
        f"Define {code}.",
        f"Which undertaking do people have in mind when they say {code}?",
    )
    low = code.lower()
    keys = (f"{low} project", f"what is {low}", f"{low} code name meaning definition of project")
    more = (f"It belongs to the initiative {initiative}.",)
    claim = f"{code} is the attempt to {goal}."
    return _plain_term(doc_id, code, near, keys, claim, (code, goal), more, goal)


def _incident(doc_id: str, match: re.Match) -> Material:
    code, happened = match.groups()
    happened = happened[0].lower() + happened[1:]
    low = code.lower()
    near = (
        f"What does {code} refer to?",
        f"What is {code}?",
        f"Which trouble do people mean when they speak of {code}?",
        f"{code}: what does the number stand for, and what happened?",
    )
    keys = (f"what is {low}", f"{low} meaning", f"{low} what happened")
    keys += (f"{low} incident number stands for what event happened",)
    claim = f"{code} is the incident in which {happened}."
    return _plain_term(doc_id, code, near, keys, claim, (code, happened), (), happened)


def _operation(doc_id: str, match: re.Match) -> Material:
    code, done, called = match.groups()
    low = code.lower()
    near = (
        f"What is {code}?",
        f"What is meant by {code}?",
        f"What does the name {code} refer to?",
        f"What was done in what is called {code}?",
        f"Explain the name {code}.",
    )
    keys = (f"what is {low}", f"{low} meaning", f"define {low}")
    keys += (f"{low} definition and meaning of the name in calendar",)
    more = (f"In the calendar it is called {called}.",)
    return _plain_term(
        doc_id, code, near, keys, f"In {code}, {done}.", (code, done), more, done, "support"
    )


_TERMS = (
    (_ACRONYM, _acronym),
    (_PROJECT, _project),
    (_INCIDENT, _incident),
    (_OPERATION, _operation),
)


def _plain_term(
    doc_id, name, near, keys, claim, needed, useful, given, area="product", **more
) -> Material:
    topic = next(t for t in banks.topics().values() if t.area == area)
    return Material(
        "definition", ("word", name), (doc_id,), {doc_id: needed}, near, near, keys, keys, (claim,),
        useful, (), _names(name), (given,), topic, "novice", **more,
    )  # fmt: skip


def _classes(company: Company, pool: list[str]) -> Iterable[Material]:
    """Ask what a class of inspection means where the document says so of its own place."""
    inside = set(pool)
    rules: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    all_rules: dict[str, tuple[Known, tuple[str, ...]]] = {}
    for doc_id, facts in company.by_document.items():
        if len({f.subject for f in facts}) != 1:
            continue
        for pattern in _CLASSES:
            match = pattern.search(company.text(doc_id))
            if match:
                parts = match.groups()
                all_rules[doc_id] = (facts[0], parts)
                for letter, rhythm in zip(parts[::2], parts[1::2], strict=True):
                    rules[facts[0].subject, letter].append((rhythm, doc_id))
    for doc_id, (about, parts) in all_rules.items():
        pairs = list(zip(parts[::2], parts[1::2], strict=True))
        for letter, rhythm in pairs:
            told = rules[about.subject, letter]
            if doc_id in inside and len({said for said, _ in told}) == 1:
                yield _class(company, doc_id, about, letter, rhythm, pairs, len(told) > 1)


def _class(company, doc_id, about, letter, rhythm, pairs, shared) -> Material:
    where, word, thing = f"{about.at} {about.name}", _name_keys(about), about.topic.title
    near = (
        f"What does class {letter} mean {where}?",
        f"What is meant by class {letter} {where}?",
        f"Define class {letter} as used {where}.",
        f"{cap(where)}, what is class {letter}?",
        f"How is class {letter} [defined|to be understood] {where}?",
        f"What does it mean {where} that something is of class {letter}?",
        f"[Somebody|A colleague] {where} [speaks|spoke] of class {letter}. What is [that|meant]?",
        f"In the [note|entry] on {thing} {where}, what does class {letter} [stand for|signify]?",
        f"Explain [the term|the name] class {letter} {where}.",
    )
    low = letter.lower()
    keys = (
        _keys("class", low, "meaning", word),
        _keys(word, "class", low),
        _keys("define class", low, word),
        _keys("inspection class", low, "definition", word),
        _keys("what does class", low, "mean for inspections", word),
        _keys(word, "glossary class", low, "definition and meaning"),
    )
    brief = _keys("class", low, *words.words(about.entity))
    facts = company.by_document[doc_id]
    others = " and ".join(f"class {x} every {v}" for x, v in pairs if x != letter)
    return Material(
        "definition",
        ("class", letter, about.entity, about.scope),
        (doc_id,),
        {doc_id: (rhythm,)},
        near,
        near,
        keys,
        keys,
        (f"Class {letter} stands for an inspection every {rhythm}.",),
        (f"The other classes are {others}.",),
        tuple(f.state() for f in facts),
        _names(about.name, letter),
        (rhythm,),
        about.topic,
        "expert",
        (brief,) if about.brief == about.entity else (),
        shared,
    )


def _called(company: Company, pool: list[str]) -> Iterable[Material]:
    """Ask who somebody is where a document explains the name, always in the same way."""
    inside = set(pool)
    entities = {fact.entity: fact for fact in company.facts}
    told: dict[str, dict[str, str]] = defaultdict(dict)
    for doc_id in company.documents:
        for pattern in _NICKS:
            for match in pattern.finditer(company.text(doc_id)):
                if match["name"] in entities:
                    told[match["name"]][doc_id] = match["nick"]
    for name, said in told.items():
        if len(set(said.values())) > 1:
            continue
        about, low = entities[name], " ".join(words.words(name))
        area = AREAS.get(about.topic.area, "this matter")
        near = (
            f"Who is {name}?",
            f"What is {name}?",
            f"Who do people mean by {name}?",
            f"What kind of firm does the name {name} refer to?",
            f"I keep hearing of {name}. Who is that?",
            f"Explain who {name} is.",
            f"Under which description is {name} known?",
            f"Somebody spoke of {name} in connection with {area}. Who is that?",
        )
        keys = (f"who is {low}", f"{low} meaning", f"what is {low}", f"{low} other name")
        keys += (f"{low} who is that and what do they do",)
        for doc_id, nick in said.items():
            if doc_id in inside:
                yield _plain_term(
                    doc_id, name, near, keys, f"By {name} people mean {nick}.", (name, nick), (), nick,
                    about.topic.area, shared=len(said) > 1,
                )  # fmt: skip


def _list(company: Company, pool: list[str], stream: Stream):
    for doc_id in pool:
        groups: dict[tuple, list[Known]] = defaultdict(list)
        for fact in company.by_document.get(doc_id, ()):
            groups["facts", fact.topic.key, fact.entity, fact.scope].append(fact)
            groups["scopes", fact.key, fact.entity, ""].append(fact)
        for (kind, key, entity, scope), facts in groups.items():
            facts = list({(f.key, f.scope): f for f in facts}.values())
            if len(facts) < (2 if kind == "facts" else 3):
                continue
            first = facts[0]
            name = entity if kind == "scopes" else first.name
            labels = [f.attribute.name for f in facts]
            yield _listed(company, doc_id, kind, (key, entity, scope), facts, name, labels)
        text = company.text(doc_id)
        for pattern in _OFFERS:
            match = pattern.search(text)
            if match and company.by_document.get(doc_id):
                yield _offers(company, doc_id, match)


def _listed(company, doc_id, kind, key, facts, name, labels) -> Material:
    first, topic = facts[0], facts[0].topic
    at = first.at
    if kind == "scopes":
        first = replace(first, name=name)
        label = term(first.attribute)
        near = (
            f"List the {label} for every part of {name}.",
            f"What {_verb(first.attribute)} the {label} in each part of {name}?",
            f"Which values of the {label} are recorded for the parts of {name}?",
            f"Name all parts of {name} with their {label}.",
        )
        far = tuple(f"{f.rstrip('?')}, one by one for all their places?" for f in _far(first))
        keys = (
            _keys(label, "list", _name_keys(first), "all parts"),
            _keys(name, label, "per part"),
            _keys(name, "list of", label, "for every single part"),
        )
        far_keys = tuple(
            _keys(k, mark) for k in _far_keys(first) for mark in ("all places list", "everywhere")
        )
        spare = ()
    else:
        listed = " and ".join([", ".join(f"the {x}" for x in labels[:-1]), f"the {labels[-1]}"])
        near = (
            f"Give {listed} {at} {name}.",
            f"Which figures on {topic.title} are recorded {at} {name}?",
            f"List what is known of {topic.title} {at} {name}.",
            f"Name {listed} {at} {name}.",
            f"{cap(at)} {name}, what are {listed}?",
            f"What are {listed} {at} {name}?",
        )
        joined = [f.attribute.far[i % len(f.attribute.far)] for i, f in enumerate(facts)]
        parts = [roundabout(joined[0], first), *(_them(a) for a in joined[1:])]
        far = (
            " ".join(map(cap, parts)),
            f"{cap(at)} {name}, several things in a list: {' '.join(map(cap, parts))}",
        )
        if len(parts) == 2:
            far += (f"{parts[0].rstrip('?')}, and {words.small(parts[1])}",)
        if first.kind == "thing":
            far = (" ".join(_far(f)[0] for f in facts),)
        word, area = _name_keys(first), _bare(AREAS.get(topic.area, ""))
        title = " ".join(words.content(topic.title))
        bare = [_bare(x, f"{first.people} people behind") for x in joined]
        # What wants a list has to say so, or to name everything that the answer lists.
        keys = (
            _keys(*labels, word),
            _keys(word, *labels),
            _keys(word, title, "all figures"),
            _keys("list", title, word),
            _keys("list of figures", *labels, word),
            _keys("all figures on", title, "recorded", at, word),
        )
        far_keys = (
            _keys(word, area, "all figures"),
            _keys(word, area, "facts and figures"),
            _keys("overview numbers", area, word),
            _keys("list of everything known", area, word),
            _keys(word, "list of numbers", area),
            *(
                _keys(f"all {mark}", *b, word)
                for mark in ("figures", "numbers")
                for b in (bare, bare[::-1])
            ),
            _keys(word, "list", *bare),
        )
        spare = tuple(
            _keys(*words.words(first.brief), *more)
            for more in ((title, "figures"), (area, "all figures"), (area, "overview"))
            if first.brief
        )
    useless = tuple(
        f.state()
        for f in company.by_document[doc_id]
        if f.topic is not topic
        or f.entity != first.entity
        or (kind == "facts" and f.scope != first.scope)
    )
    useful = tuple(
        f"It was also noted that {case.problem}."
        for case in company.cases.get(doc_id, ())
        if case.topic is topic
    )
    return Material(
        "list",
        (kind, *key),
        (doc_id,),
        {doc_id: tuple(f.value for f in facts)},
        near,
        far,
        keys,
        far_keys,
        tuple(f.state() for f in facts),
        useful,
        useless,
        _names(name),
        tuple(f.value for f in facts),
        topic,
        "researcher" if kind == "facts" else "expert",
        spare,
        _shared(*facts),
    )


def _them(phrase: str) -> str:
    """Return a roundabout phrase about those who were named before."""
    return _AFTER.sub(
        lambda m: "there" if m[1] in ("at", "to", "in") else f"{m[1]} them", phrase
    ).replace("{f}", "they")


def _offers(company: Company, doc_id: str, match: re.Match) -> Material:
    parts = match.groups()
    pairs = list(zip(parts[::2], parts[1::2], strict=True))
    about = company.by_document[doc_id][0]
    thing = about.topic.title
    name = about.subject
    near = (
        f"Which options and prices were there {about.at} {name}?",
        f"List the three offers {about.at} {name} with their prices.",
        f"What did each option cost {about.at} {name}?",
        f"{cap(about.at)} {name}, what were the options and what did each cost, in euros?",
        f"Name the offers for {name} in the note on {thing}, with the price of each.",
    )
    far = (
        f"Between what alternatives did {about.people.replace(about.name, name)} have to choose, and how dear was every one?",
        f"Enumerate the bids received {about.at} {name}.",
        f"Who bid how much {about.at} {name}?",
        f"What would every supplier have charged {name}?",
    )
    word = " ".join(words.words(name))
    keys = (
        _keys("offers prices", word),
        _keys(word, "options cost"),
        _keys(word, "three offers list of options and prices"),
    )
    far_keys = (
        _keys("all bids", word),
        _keys(word, "all alternatives amounts"),
        _keys("suppliers alternatives how expensive every bid was", word),
    )
    return Material(
        "list",
        ("offers", doc_id),
        (doc_id,),
        {doc_id: tuple(parts)},
        near,
        far,
        keys,
        far_keys,
        tuple(f"Option {option} costs {price}." for option, price in pairs),
        (f"{pairs[0][0]} was the cheapest at first.",) if "cheapest" in match.group() else (),
        tuple(f.state() for f in company.by_document[doc_id]),
        _names(name),
        tuple(price for _, price in pairs),
        about.topic,
        "journalist",
    )


def _explanation(company: Company, pool: list[str], stream: Stream):
    elsewhere = dict(_rows())
    for doc_id in pool:
        for case in company.cases.get(doc_id, ()):
            said = elsewhere.get(case.problem)
            fixed = case.fix.lower() in company.lower[doc_id]
            for remedy in (False, True) if fixed else (False,):
                yield _explained(company, case, said, remedy, fixed)


def _cuts(gist: str) -> list[str]:
    """Return the beginnings of two and three words that do not cut off what is denied."""
    parts = gist.split()
    cuts = [parts[:n] for n in (3, 2) if len(parts) >= n]
    return [" ".join(c) for c in cuts if not _NEGATIONS & set(parts) or c == parts]


@cache
def _rows() -> tuple[tuple[str, str], ...]:
    path = banks.FOLDER.parent / "datamorgana" / "cases.md"
    lines = path.read_text(encoding="utf-8").splitlines()[1:]
    return tuple(tuple(banks.fields(line)) for line in lines if line)


def _explained(
    company: Company, case: Case, said: str | None, remedy: bool, fixed: bool
) -> Material:
    about = case.about
    told = company.by_document[case.document]
    one = (
        len({f.subject for f in told}) == 1
        and about.subject.lower() in company.lower[case.document]
    )
    at, name = about.at, about.subject if one else about.entity
    if at == "for":
        at = "at"
    where = f"{at} {name}"
    if remedy:
        near_frames = (
            "How [can|could] it be [avoided|prevented] {w} that {p}?", "{W}, {p}. What [helps|works|was done] against [it|that]?", "What is to be done {w} so that it does not happen again that {p}?",
            "How was it solved {w} that {p}?", "Explain what to do {w} when {p}.", "If {p} {w}, what is the [remedy|cure|solution|fix]?",
            "[Which|What] [measure|step|action] was [taken|chosen] {w} because {p}?", "How do we deal with it {w} when {p}?",
        )  # fmt: skip
        far_frames = (
            "How does one [put an end to it|cope|react] {w} when {p}?", "{W}, {p}. [What|Which] [cure|way out|solution] was [found|proposed]?", "What way out is there {w} if {p}?",
            "Somebody noticed {w} that {p}. How did they get rid of that?", "Explain how to [prevent|stop] it {w} when {p}.", "What can one do {w} so that it never occurs again that {p}?",
        )  # fmt: skip
        keys = ("fix", "solution", "how to avoid", "remedy")
    else:
        near_frames = (
            "{W}, why is it that {p}?", "What is the [reason|explanation] {w} [that|why] {p}?", "{W}, {p}. [Why|Why so|Why is that|How come]?", "How come {p} {w}?",
            "What [causes|triggers|explains] it {w} when {p}?", "Explain why {p} {w}.", "What was found to be the cause {w} when {p}?",
            "{W}, why does it happen that {p}?", "What explains the fact that {p} {w}?", "{P} {w}: for what reason?",
        )  # fmt: skip
        far_frames = (
            "How come {p} {w}?", "{W}, {p}. What [lies behind it|is behind that|is the cause|went wrong]?", "What is going on {w}, where {p}?", "Explain why {p} {w}.",
            "What [brought it about|led to it] {w} that {p}?", "[Who or what|What] is to blame {w} if {p}?", "For [what|which] reason [would|could] it be {w} that {p}?",
        )  # fmt: skip
        keys = ("why", "reason", "cause", "root cause")

    def fill(frames, clause):
        more = {"{w}": where, "{W}": cap(where), "{p}": clause, "{P}": cap(clause)}
        return tuple(_replace(frame, more) for frame in frames)

    word = _name_keys(about) if about.name == name else " ".join(words.words(name))
    bare = _gist(case.problem)
    far = fill(far_frames, said) if said else ()
    far_bare = _gist(said) if said else ""
    short = " ".join(w for w in words.words(about.entity) if w not in ("the", "at", "of"))
    reason, cure = f"{cap(case.cause)}.", f"What helps is to {case.fix}."
    facts = [f.state() for f in told]
    same = [f.state() for f in told if f.topic is case.topic and f.entity == about.entity]
    return Material(
        "explanation",
        ("remedy" if remedy else "reason", case.problem, name),
        (case.document,),
        {case.document: (case.fix if remedy else case.cause, case.problem)},
        fill(near_frames, case.problem),
        far,
        tuple(_keys(*x) for k in keys for x in ((bare, k, word), (word, bare, k))),
        tuple(_keys(*x) for k in keys for x in ((far_bare, k, word), (word, far_bare, k)))
        if said
        else (),
        (cure,) if remedy else (f"The reason is this: {words.small(reason)}",),
        ((f"The cause was that {case.cause}.",) if remedy else (cure,) if fixed else ()) + tuple(same[:1]),
        tuple(f for f in facts if f not in same),
        _names(name),
        (case.fix if remedy else case.cause,),
        case.topic,
        "novice" if remedy else "researcher",
tuple(_keys(w, k, cut) for k in keys for w in (word, short) for b in (bare, far_bare) for cut in _cuts(b)),
    )  # fmt: skip


def _replace(text: str, values: dict[str, str]) -> str:
    for slot, value in values.items():
        text = text.replace(slot, value)
    return text


# Two documents


def _comparison(company: Company, pool: list[str], stream: Stream):
    """Two subjects of one kind, the same attribute; neither document knows the other's value."""
    inside = set(pool)
    by_key: dict[str, list[tuple[str, Known]]] = defaultdict(list)
    for doc_id, fact in _singles(company, pool):
        if fact.kind != "thing":
            by_key[fact.key].append((doc_id, fact))
    for key in sorted(by_key):
        members = by_key[key]
        for doc_a, a in members:
            doc_b, b = stream.pick(members)
            apart = a.entity != b.entity and doc_b not in a.documents and doc_a not in b.documents
            if not apart or doc_b not in inside or b.entity.lower() in company.lower[doc_a]:
                continue
            if a.entity.lower() not in company.lower[doc_b]:
                yield _compared(company, a, doc_a, b, doc_b)


def _number(value: str) -> float | None:
    head = value.split()[0].replace(",", "")
    return float(head) if re.fullmatch(r"\d+(\.\d+)?", head) else None


def _compared(company, a: Known, doc_a: str, b: Known, doc_b: str) -> Material:
    label, at = term(a.attribute), a.at
    numbers = [_number(f.value) for f in (a, b)] if banks.number_range(a.attribute.values) else []
    near = [
        f"How do {a.name} and {b.name} differ in the {label}?",
        f"Compare the {label} {at} {a.name} with that {at} {b.name}.",
        f"Do {a.name} and {b.name} have the same {label}?",
        f"{a.name} and {b.name}: how does the {label} compare?".replace("the ", "The ", 1)
        if a.name.startswith("the ")
        else f"{a.name} and {b.name}: how does the {label} compare?",
    ]
    if numbers:
        near += [
            f"Which has the higher {label}, {a.name} or {b.name}?",
            f"Is the {label} lower {at} {a.name} or {at} {b.name}?",
            f"Between {a.name} and {b.name}, where is the {label} higher?",
        ]
    other = b.name
    far = [f"{f.rstrip('?.')}, and what about {other}?" for f in _far(a)] + [
        f"{f.rstrip('?.')}, compared with {other}?" for f in _far(a)
    ]
    both = f"{a.name} as against {b.name}"
    if numbers:
        far += [x.replace("{f}", both) for x in a.attribute.far if x.endswith("{f}?")]
    both = f"{a.name} and {b.name}"
    far += [x.replace("{f}", both).rstrip("?") + ", respectively?" for x in a.attribute.far]
    if numbers:
        far += [f"{f.rstrip('?.')}, and is that more or less than with {other}?" for f in _far(a)]
    one, two = _name_keys(a), _name_keys(b)
    short = a.attribute.name.lower()
    keys = (
        f"{one} vs {two} {short}",
        f"{short} {one} {two}",
        f"compare {short} {one} and {two}",
        f"difference in {short} between {one} and {two}",
    )
    bare = _bare(_far(a)[0], f"{a.people} people behind")
    far_keys = (
        f"{bare} {one} vs {two}",
        f"{one} or {two} {bare}",
        f"{one} versus {two} {bare}",
    )
    if len(bare.split()) < 2:
        far_keys = ()
    if numbers and numbers[0] == numbers[1] or a.value == b.value:
        verdict = f"They have the same {label}: {a.value}."
    elif numbers:
        high = a if numbers[0] > numbers[1] else b
        verdict = f"{cap(label)}: higher {high.at} {high.name}."
    else:
        verdict = f"{cap(label)}: {a.value} {at} {a.name}, {b.value} {at} {b.name}."
    useful_a, useless_a = _context(company, a, doc_a)
    useful_b, useless_b = _context(company, b, doc_b)
    return Material(
        "comparison",
        ("compared", a.key, *sorted((a.subject, b.subject))),
        (doc_a, doc_b),
        {doc_a: (a.value,), doc_b: (b.value,)},
        tuple(near),
        tuple(far),
        keys,
        far_keys,
        (verdict, a.state(), b.state()),
        (*useful_a[:1], *useful_b[:1]),
        (*useless_a[:1], *useless_b[:1]),
        _names(a.name, b.name),
        (a.value, b.value),
        a.topic,
        _leaning(a.attribute),
        (f"{one} {two} {' '.join(bare.split()[:2])}",) if len(bare.split()) > 1 else (),
        _shared(a, b),
    )


def _multi(company: Company, pool: list[str], stream: Stream):
    """Two things about one subject; neither document knows the other's answer."""
    by_subject: dict[str, list[tuple[str, Known]]] = defaultdict(list)
    for doc_id, fact in _singles(company, pool):
        if fact.kind != "thing":
            by_subject[fact.subject].append((doc_id, fact))
    for subject in sorted(by_subject):
        members = by_subject[subject]
        for doc_a, a in members:
            # Both facts are of one place: else one question would be about two.
            for doc_b, b in stream.sample(members, PARTNERS):
                if a.key == b.key or doc_b in a.documents or doc_a in b.documents:
                    continue
                if a.kind != b.kind:
                    continue
                said = [
                    b.value.lower() in company.lower[doc_a],
                    a.value.lower() in company.lower[doc_b],
                ]
                if not any(said):
                    yield _both(company, a, doc_a, b, doc_b)


def _both(company, a: Known, doc_a: str, b: Known, doc_b: str) -> Material:
    label, second = term(a.attribute), term(b.attribute)
    is_a, is_b = (
        "who" if f.attribute.values in ("@person", "@outsider") else "what" for f in (a, b)
    )
    asks = [x for x in _near(a) if x.endswith("?") and words.count(x) > 3]
    near = [f"{ask[:-1]}, and {is_b} {_verb(b.attribute)} the {second}?" for ask in asks]
    near += [
        f"The {label} and the {second} {a.at} {a.name}?",
        f"{cap(a.attribute.name)} and {b.attribute.name} {a.at} {a.name}?",
        f"What do we know of the {label} and the {second} {a.at} {a.name}?",
        f"{cap(a.at)} {a.name}, {is_a} {_verb(a.attribute)} the {label}, and {is_b} {_verb(b.attribute)} the {second}?",
        f"{cap(is_a)} {_verb(a.attribute)} the {label} {a.at} {a.name}, and [what about|how about|also] the {second}?",
    ]
    far = [
        f"{x.rstrip('?.')}, and {words.small(_them(y))}" for x in _far(a) for y in b.attribute.far
    ]
    one = _name_keys(a)
    bare = [_bare(_far(f)[0], f"{f.people} people behind") for f in (a, b)]
    keys = (
        _keys(one, a.attribute.name, b.attribute.name),
        _keys(a.attribute.name, "and", b.attribute.name, one),
        _keys(one, a.attribute.name, "as well as", b.attribute.name),
    )
    far_keys = (
        _keys(bare[0], "and", bare[1], one),
        _keys(one, *bare),
    )
    useful_a, useless_a = _context(company, a, doc_a)
    useful_b, useless_b = _context(company, b, doc_b)
    return Material(
        "multi-aspect",
        ("both", a.entity, a.scope, *sorted((a.key, b.key))),
        (doc_a, doc_b),
        {doc_a: (a.value,), doc_b: (b.value,)},
        tuple(near),
        tuple(far),
        keys,
        far_keys,
        (a.state(), b.state()),
        (*useful_a[:1], *useful_b[:1]),
        (*useless_a[:1], *useless_b[:1]),
        _names(a.name),
        (a.value, b.value),
        a.topic,
        _leaning(b.attribute),
        (_keys(one, *(" ".join(x.split()[:2]) for x in bare)),)
        if all(len(x.split()) > 1 for x in bare)
        else (),
        _shared(a, b),
    )


BUILDERS: dict[str, Callable[[Company, list[str], Stream], Iterable[Material]]] = {
    "factoid": _factoid,
    "yes/no": _yes_no,
    "definition": _definition,
    "list": _list,
    "explanation": _explanation,
    "comparison": _comparison,
    "multi-aspect": _multi,
}
