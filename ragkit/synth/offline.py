"""The offline author: documents from briefs with grammar and phrase banks, no model needed."""

from __future__ import annotations

import re
from datetime import timedelta

from ragkit.synth import banks
from ragkit.synth.pen import CASE, GLUE, Pen, cap, stop
from ragkit.synth.streams import Stream
from ragkit.synth.world import MONTHS, WEEKDAYS, World, say_date


def _clock(pen: Pen) -> str:
    return f"{pen.stream.between(5, 22):02d}:{pen.stream.below(60):02d}"


def _talk(pen: Pen) -> str:
    return pen.choose("talk", pen.slots["_talk"])


def slots(world: World, brief) -> dict:
    """Return what the phrases may refer to in a document."""
    people = brief.people
    subject, topic = brief.subject, brief.topic
    thing = None
    if topic:
        title = brief.title.lower()
        thing = next((t for t in topic.things if t.lower() in title), topic.things[0])
    statement = brief.facts[0].statement if brief.facts and topic else None
    values: dict = {
        "s": subject.phrase(brief.scope) if subject and topic else None,
        "n": subject.name if subject else None,
        "nick": subject.nick if subject else None,
        "thing": thing,
        "Thing": cap(thing) if thing else None,
        "contact": subject.contact if subject else None,
        "company": world.company,
        "product": world.product,
        "date": lambda pen: say_date(brief.day - timedelta(days=pen.stream.between(2, 40))),
        "few": lambda pen: str(pen.stream.between(2, 9)),
        "few2": lambda pen: str(pen.stream.between(2, 9)),
        "many": lambda pen: str(pen.stream.between(14, 96)),
        "clock": _clock,
        "clock2": _clock,
        "weekday": lambda pen: pen.stream.pick(WEEKDAYS[:5]),
        "month": lambda pen: pen.stream.pick(MONTHS),
        "codeword": lambda pen: pen.stream.pick(banks.words("codewords")).lower(),
        "talk": _talk,
        "wrong": lambda pen: pen.choose("wrong", GLUE["wrong"]),
        "question": lambda pen: pen.choose("question", GLUE["question"]),
        "question2": lambda pen: pen.say("question2"),
        "fact": statement,
        "Fact": cap(statement) if statement else None,
        "fact2": stop(statement) if statement else None,
        "to_first": people[1].split()[0] if len(people) > 1 else "all",
        "_talk": topic.talk if topic else _PLAIN_TALK,
    }
    for i in range(4):
        values[f"p{i + 1}"] = people[i % len(people)].split()[0]
    for role in CASE:
        text = next((p.text for p in brief.points if p.role == role), None)
        values[role], values[cap(role)] = text, cap(text) if text else None
    values["Fix2"] = values["Fix"]
    return values


_PLAIN_TALK = (
    "Let us keep it simple.",
    "I would rather know it today than on Friday.",
    "We have been here before, with other names.",
    "Somebody has to say no, and today it is me.",
    "It is on the board, in red.",
    "I am glad that we wrote it down this time.",
    "Half of the work is telling people.",
    "If it fits on one page, they will read it.",
)


class Offline:
    """Write documents from phrase banks: a pure function of world and brief."""

    name = "offline"

    def __init__(self, world: World):
        self.world = world

    def write(self, brief) -> dict:
        """Return the document: path, doc_id, source_type, title, its metadata, content."""
        pen = Pen(
            Stream(self.world.seed, "pen", brief.voice or brief.doc_id), slots(self.world, brief)
        )
        metadata, lines = _COMPOSERS[brief.source](self.world, brief, pen)
        metadata |= brief.metadata
        title, content = situate(brief, brief.title, "\n".join(lines).strip())
        return {
            "path": brief.path,
            "doc_id": brief.doc_id,
            "source_type": brief.source,
            "title": title,
            **metadata,
            "content": content,
        }

    def write_all(self, briefs) -> list[dict]:
        """Return the documents of several briefs, in order."""
        return [self.write(brief) for brief in briefs]


def situate(brief, title: str, content: str) -> tuple[str, str]:
    """Name the place that a document is about where no phrase of it has: facts hold for a place."""
    if not (brief.scope and brief.subject):
        return title, content
    if brief.scope.lower() in f"{title}\n{content}".lower():
        return title, content
    # Not before an apostrophe: the place would own what is the subject's.
    name = re.compile(re.escape(brief.subject.name) + r"(?!['’\w])")
    whole = brief.subject.phrase(brief.scope)
    if name.search(title):
        return name.sub(lambda _: whole, title, count=1), content
    if name.search(content):
        return title, name.sub(lambda _: whole, content, count=1)
    return f"{title} ({whole})", content


def _ordinary(brief) -> bool:
    """Whether a document is about a topic and a subject, not a project's or an informal one."""
    return brief.topic is not None and brief.subject is not None


def _has(brief, role: str) -> bool:
    return any(point.role == role for point in brief.points)


def _plain(point) -> str:
    """Return a finished point as the author leaves it."""
    return point.text if point.role in ("table", "code", "head") else stop(point.text)


def _exchange(pen: Pen, rule: str) -> list[str]:
    """Return a question and its answer."""
    return pen.fill(pen.choose(rule, GLUE[rule])).split(" | ")


# Slack


def slack(world: World, brief, pen: Pen):
    stream = pen.stream
    cast = brief.people[: stream.between(3, 5)]
    lines: list[str] = []
    last = ""

    def speak(text: str, who: str | None = None) -> None:
        nonlocal last
        if who is None:
            who = stream.pick([p for p in cast if p != last])
        last = who
        lines.append(f"{who}: {text}")

    first = cast[0]
    if brief.kind == "standup":
        return _slack_meta(brief, cast), _standup(world, brief, pen, cast)
    tangent_at = stream.between(2, 7) if stream.chance(0.4) else -1
    if not _has(brief, "problem") and brief.kind in ("question", "announcement", "task"):
        if brief.kind == "question":
            wanted = brief.facts[0]
            more = {"attribute": wanted.attribute, "subject": wanted.subject}
            line = pen.choose("slack.wanted", GLUE["slack.wanted"])
            speak(pen.fill(line, {**more, "Subject": cap(wanted.subject)}), first)
            if stream.chance(0.6):
                asked, answered = _exchange(pen, "slack.which")
                speak(asked)
                speak(answered, first)
        else:
            speak(pen.say("slack.announce"), first)
    scripted = brief.topic is None
    for i, point in enumerate(brief.points):
        pen.focus(brief.points, i)
        if point.role == "problem":
            speak(pen.say("slack.also" if i else "slack.open"), first)
            for _ in range(stream.between(1, 3)):
                asked, answered = _exchange(pen, "slack.exchange")
                speak(asked)
                speak(answered, first)
            if stream.chance(0.55):
                speak(pen.say("slack.wrong"))
                speak(pen.say("slack.no"))
        elif point.role == "cause":
            speak(pen.say("slack.cause"), cast[1])
            if stream.chance(0.5):
                speak(pen.say("slack.ack"))
            if stream.chance(0.45):
                speak(pen.fill("{talk}"))
        elif point.role == "fix":
            speaker = stream.pick(cast[1:])
            speak(pen.say("slack.fix"), speaker)
            if stream.chance(0.5):
                speak(cap(pen.fill("{question}")))
                speak(pen.say("slack.reply"), speaker)
        elif point.role == "fact":
            line = pen.choose("slack.fact", GLUE["slack.fact"])
            speak(pen.fill(line, {"fact": point.text, "Fact": cap(point.text)}))
            if stream.chance(0.35):
                speak(pen.say("slack.ack"))
        elif point.role == "head":
            continue
        elif point.role == "table":
            rows = [r for r in point.text.split("\n") if not r.startswith("|---")]
            speak("here is the list", first)
            lines.extend(
                "• " + ", ".join(c.strip() for c in r.strip("|").split("|")) for r in rows[1:]
            )
        else:
            speak(stop(point.text), first if scripted and not lines else None)
            if not scripted and stream.chance(0.45):
                speak(pen.say("slack.ack"))
        if 0 < tangent_at <= len(lines) and not scripted:
            tangent_at = -1
            speak(pen.say("slack.tangent"))
            if stream.chance(0.4):
                speak(pen.say("slack.laugh"))
    if stream.chance(0.7):
        speak(pen.say("slack.close"), first if brief.kind != "question" else None)
    return _slack_meta(brief, cast), lines


def _slack_meta(brief, cast):
    return {
        "channel": brief.path.split("/")[1],
        "date": brief.day.isoformat(),
        "participants": "; ".join(cast),
    }


def _standup(world: World, brief, pen: Pen, cast) -> list[str]:
    stream = pen.stream
    lines = []
    rest = list(brief.points)
    for i, who in enumerate(cast):
        lines.append(f"{who}: {pen.say('slack.standup')}")
        if i == 0 or not rest:
            lines[-1] += " " + (stop(pen.say("slack.wrong")) if i else pen.say("slack.open"))
        for point in rest[: 1 + len(rest) // len(cast)]:
            if point.role in ("table", "head"):
                continue
            lead = {
                "problem": "Still with me: ",
                "cause": "Found out that ",
                "fix": "Today I ",
            }.get(point.role, "")
            text = point.text
            if point.role == "fix":
                lead = stream.pick(("Next: ", "Plan for today: ", "I'm going to "))
            lines[-1] += " " + stop(lead + text if lead else text)
        rest = rest[1 + len(rest) // len(cast) :] if rest else rest
        if stream.chance(0.4):
            lines[-1] += " " + pen.say("slack.blocked")
    for point in rest:
        lines.append(f"{cast[-1]}: {_plain(point)}")
    if stream.chance(0.6):
        lines.append(f"{cast[0]}: {pen.fill('{talk}')}")
    others = [p for p in cast[1:] if not lines[-1].startswith(f"{p}:")]
    lines.append(f"{stream.pick(others)}: {pen.say('slack.ack')}")
    return lines


# Mail


def gmail(world: World, brief, pen: Pen):
    stream = pen.stream
    sender, to = brief.people[0], brief.people[1]
    lines = [pen.say("mail.greeting"), ""]
    paragraphs = [cap(pen.say("mail.open"))]
    for i, point in enumerate(brief.points):
        pen.focus(brief.points, i)
        if point.role in CASE:
            rule = "also" if i and point.role == "problem" else point.role
            paragraphs.append(pen.say(f"mail.{rule}"))
        elif point.role == "fact":
            line = pen.choose("mail.facts", GLUE["mail.facts"])
            paragraphs.append(pen.fill(line, {"fact": point.text}))
        elif point.role == "head":
            continue
        else:
            paragraphs.append(_plain(point))
        if stream.chance(0.3):
            paragraphs.append(stop(pen.say("mail.colour")))
    if len(paragraphs) < 5:
        paragraphs.append(stop(pen.say("mail.colour")))
    for paragraph in paragraphs:
        lines += [paragraph, ""]
    lines += [pen.say("mail.sign"), sender.split()[0]]
    if brief.kind == "replies" or stream.chance(0.3):
        before = lines
        reply = [
            f"{sender.split()[0]},",
            "",
            cap(pen.say("mail.reply")),
            "",
            to.split()[0],
            "",
            f"On {say_date(brief.day)} {sender} wrote:",
        ]
        quoted = [f"> {line}".rstrip() for line in before]
        lines = reply + quoted
        if stream.chance(0.5):
            back = [f"{to.split()[0]},", "", cap(pen.say("mail.reply")), "", sender.split()[0], ""]
            back.append(f"On {say_date(brief.day + timedelta(days=1))} {to} wrote:")
            lines = back + [f"> {line}".rstrip() for line in lines]
    domain = world.company.split()[0].lower() + ".example"
    address = to.lower().replace(" ", ".") + "@" + domain
    return {"from": sender, "to": address, "date": brief.day.isoformat()}, lines


# Tickets


def _comments(brief, pen: Pen, count: int, points) -> list[str]:
    """Return comments by the people of the brief, the given points among them."""
    stream = pen.stream
    texts = [pen.say("ticket.comment") for _ in range(count)]
    at = 0
    for point in points:
        at = stream.between(at, len(texts))
        texts.insert(at, _plain(point))
        at += 1
    day, who = brief.day, ""
    lines = []
    for text in texts:
        day += timedelta(days=stream.between(0, 4))
        who = stream.pick([p for p in brief.people if p != who])
        lines.append(f"{who}, {day.day} {MONTHS[day.month - 1][:3]}: {stop(text)}")
    return lines


def linear(world: World, brief, pen: Pen):
    stream = pen.stream
    verbatim = [p for p in brief.points if p.role in ("text", "table", "code")]
    facts = [p for p in brief.points if p.role == "fact"]
    lines: list[str] = []
    if _has(brief, "problem"):
        lines += [pen.say("ticket.intro"), ""]
    elif not verbatim:
        lines += [stop(f"{pen.fill('{Thing}')} for {pen.fill('{s}')}"), ""]
    lines += [_plain(p) + "\n" for p in verbatim[:1]]
    late = verbatim[1:]
    if _has(brief, "problem") and stream.chance(0.7):
        lines.append(stream.pick(("Steps", "How to see it", "To repeat")))
        lines += [f"{i}. {cap(pen.say('ticket.step'))}" for i in range(1, stream.between(3, 5))]
        lines += ["", f"Expected: {pen.say('ticket.expected')}", ""]
    if _has(brief, "fix"):
        name = stream.pick(("Proposal", "What to do", "Idea"))
        lines += [f"{name}: {stop(pen.fill('{fix}'))}", ""]
    second = [p for p in brief.points if p.role in CASE][3:]
    if second:
        lines += [stop(f"Second finding in the same place: {second[0].text}"), ""]
        late = [*late, *(_text(stop(p.text)) for p in second[1:2])]
        late += [_text(f"For the second finding: {p.text}") for p in second[2:3]]
    if facts:
        lines.append(stream.pick(("Acceptance", "Done when", "To keep in mind")))
        lines += [f"- {stop(point.text)}" for point in facts]
        lines += [f"- {cap(pen.say('ticket.accept2'))}." for _ in range(stream.between(1, 2))]
        lines.append("")
    lines += _comments(brief, pen, stream.between(2, 4), late)
    team = brief.path.split("/")[1]
    return {
        "team": cap(team),
        "status": stream.pick(
            ("Todo", "In Progress", "In Review", "Done", "Done", "Backlog", "Canceled")
        ),
        "priority": stream.pick(("Low", "Medium", "High", "Urgent")),
        "assignee": brief.people[0],
        "created": brief.day.isoformat(),
        "labels": "; ".join(
            stream.sample(
                (
                    "customer",
                    "chore",
                    "winter",
                    "night shift",
                    "bug",
                    "quick win",
                    "research",
                    "debt",
                ),
                2,
            )
        ),
    }, lines


def jira(world: World, brief, pen: Pen):
    stream = pen.stream
    verbatim = [p for p in brief.points if p.role in ("text", "table", "code")]
    facts = [p for p in brief.points if p.role == "fact"]
    half = (len(verbatim) + 1) // 2
    lines: list[str] = []
    if _has(brief, "problem"):
        lines += ["*Description*", pen.say("ticket.intro"), ""]
    elif verbatim:
        lines += ["*Description*"]
    else:
        lines += ["*Description*", stop(f"{pen.fill('{Thing}')}, {pen.fill('{s}')}"), ""]
    for point in verbatim[:half]:
        lines += [_plain(point), ""]
    if brief.subject:
        lines += [
            f"*Environment*: {cap(brief.subject.label)}, {brief.subject.region}; {pen.fill('{few}')} {stream.pick(('sites', 'users', 'shifts', 'devices'))} affected",
            f"*Impact*: {stream.pick(('low', 'medium', 'high for one shift', 'annoying', 'money', 'none until the harvest'))}",
            "",
        ]
    for point in facts:
        lines += [
            f"*{stream.pick(('Agreed', 'Figure', 'Note', 'Contract', 'Setting'))}*: {stop(point.text)}",
            "",
        ]
    if _has(brief, "problem") and stream.chance(0.6):
        lines.append("*Steps*")
        lines += [f"# {pen.say('ticket.step')}" for _ in range(stream.between(2, 4))]
        lines.append("")
    lines.append("*Comments*")
    second = [p for p in brief.points if p.role in CASE][3:]
    extra = []
    if _has(brief, "cause"):
        extra.append(_text(stop(pen.fill("{cause}"))))
    if second:
        extra += [_text(f"While there: {p.text}") for p in second[:2]]
    if _has(brief, "fix"):
        extra.append(_text(f"Resolution: {pen.fill('{fix}')}"))
    extra += [_text(f"And for the other point: {p.text}") for p in second[2:3]]
    lines += _comments(brief, pen, stream.between(2, 4), [*extra, *verbatim[half:]])
    done = stream.chance(0.6)
    return {
        "project": cap(brief.topic.area if brief.topic else "Projects"),
        "status": "Done" if done else stream.pick(("Open", "In Progress", "Waiting for customer")),
        "priority": stream.pick(("Lowest", "Low", "Medium", "High", "Highest")),
        "reporter": brief.people[0],
        "assignee": brief.people[1],
        "created": brief.day.isoformat(),
    }, lines


def _text(text: str):
    from ragkit.synth.briefs import Point

    return Point("text", text)


# Files


def google_drive(world: World, brief, pen: Pen):
    stream = pen.stream
    lines: list[str] = []
    if brief.kind == "sheet" and brief.subject:
        lines += [pen.say("drive.purpose"), ""]
        lines += _site_table(brief)
        lines += ["", "Remarks"]
        lines += [f"- {_plain(p)}" for p in brief.points if p.role in ("fact", "text")]
        lines += [
            f"- {pen.fill('{talk}')}",
            f"- Last checked on {pen.fill('{date}')} by {brief.people[1]}.",
        ]
    elif brief.kind == "checklist":
        lines += [pen.say("drive.purpose"), ""]
        if _has(brief, "problem"):
            lines += [
                f"Why this list exists: {stop(pen.fill('{problem}'))} {stop(pen.fill('{cause}'))}",
                "",
            ]
        steps = [stop(p.text) for p in brief.points if p.role in ("fact", "fix", "text")]
        steps += [pen.say("page.step") for _ in range(stream.between(4, 6))]
        lines += [f"- ( ) {step}" for step in stream.sample(steps, len(steps))]
        lines += ["", f"Signed: {brief.people[0]}, {say_date(brief.day)}"]
    else:
        style = stream.below(5)
        count, below = (
            0,
            -1,
        )  # headings so far, and those under a part's own heading if there is one

        def head(text: str, part: bool = False) -> None:
            nonlocal count, below
            inside = below >= 0 and not part
            if inside:
                below += 1
            else:
                count += 1
            number = f"{count}.{below} " if inside else f"{count}. "
            marked = number if style < 2 else "### " if inside else "## "
            lines.append((text if inside else text.upper()) if style == 4 else marked + text)
            if part and _ordinary(brief):
                below = 0

        lines += [pen.say("drive.purpose"), ""] if _ordinary(brief) else []
        for i, point in enumerate(brief.points):
            pen.focus(brief.points, i)
            if point.role == "problem":
                head(stream.pick(("Background", "What happened", "Where we are")))
                lines += [pen.say("drive.background"), ""]
            elif point.role == "cause":
                head(stream.pick(("Findings", "Cause", "What we found")))
                lines += [pen.say("drive.finding"), ""]
            elif point.role == "fix":
                head(stream.pick(("Proposal", "Next steps", "Recommendation")))
                lines += [pen.say("drive.proposal"), ""]
            elif point.role == "fact":
                lines += [
                    stop(
                        pen.fill(pen.choose("mail.facts", GLUE["mail.facts"]), {"fact": point.text})
                    ),
                    "",
                ]
            elif point.role == "head":
                head(point.text, part=True)
            else:
                lines += [_plain(point), ""]
        if _ordinary(brief) and stream.chance(0.75):
            below = -1
            head(stream.pick(("Open questions", "Open", "To be clarified")))
            lines += [f"- {pen.say('drive.open')}" for _ in range(stream.between(2, 4))]
        lines += [
            "",
            f"{stream.pick(('Written by', 'Author:', 'Notes by'))} {brief.people[0]}, with {brief.people[1]} and {brief.people[2]}.",
        ]
    mime = {"sheet": "spreadsheet", "checklist": "document", "memo": "document"}
    return {
        "owner": brief.people[0],
        "last_modified": brief.day.isoformat(),
        "folder": brief.path.split("/")[1],
        "mime_type": mime.get(brief.kind, "document"),
    }, lines


def _site_table(brief) -> list[str]:
    """Return the brief's facts as a table of parts by attributes."""
    names = list(dict.fromkeys(fact.attribute for fact in brief.facts))
    lines = ["| part | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for scope in dict.fromkeys(fact.scope for fact in brief.facts):
        cells = {fact.attribute: fact.value for fact in brief.facts if fact.scope == scope}
        lines.append(f"| {scope or 'in general'} | " + " | ".join(cells[n] for n in names) + " |")
    return lines


def hubspot(world: World, brief, pen: Pen):
    stream = pen.stream
    subject = brief.subject
    lines: list[str] = []
    more = {
        "label": subject.label,
        "region": subject.region,
        "goods": _goods(subject),
        "scopes": ", ".join(subject.scopes),
    }
    rule = f"hub.{brief.kind if brief.kind in ('deal', 'contact') else 'company'}"
    lines += [cap(pen.fill(pen.choose(rule, GLUE[rule]), more)), ""]
    notes: list[str] = []
    for point in brief.points:
        if point.role == "fact":
            line = pen.choose("hub.fact", GLUE["hub.fact"])
            notes.append(stop(pen.fill(line, {"fact": point.text, "Fact": cap(point.text)})))
        elif point.role == "problem":
            notes.append(stop(f"call from {subject.contact}: {point.text}"))
        elif point.role == "cause":
            notes.append(stop(f"explained to {subject.contact} that {point.text}"))
        elif point.role == "fix":
            notes.append(stop(f"agreed with {subject.contact} to {point.text}"))
        elif point.role != "head":
            notes.append(_plain(point))
    for _ in range(stream.between(3, 5)):
        rule = pen.choose("hub.plain", _HUB_PLAIN)
        notes.insert(stream.between(0, len(notes)), stop(pen.fill(rule)))
    day = brief.day - timedelta(days=9 * len(notes))
    for note in notes:
        day += timedelta(days=stream.between(2, 14))
        lines.append(
            f"{day.day} {MONTHS[day.month - 1][:3]} {day.year}, {stream.pick(brief.people[:3]).split()[0]}: {note}"
        )
    return {
        "record_type": brief.kind if brief.kind in ("company", "deal", "contact") else "company",
        "owner": brief.people[0],
        "lifecycle_stage": stream.pick(
            ("lead", "opportunity", "customer", "customer", "customer (at risk)", "former customer")
        ),
        "region": subject.region,
        "last_activity": brief.day.isoformat(),
    }, lines


_HUB_PLAIN = tuple(
    line
    for line in GLUE["hub.note"]
    if not any(w in line for w in ("{fact}", "{fix}", "{cause}", "{Problem}"))
)


def _goods(subject) -> str:
    return next((row[3] for row in banks.rows("segments") if row[0] == subject.label), "things")


# Meetings


def fireflies(world: World, brief, pen: Pen):
    stream = pen.stream
    cast = brief.people[: stream.between(3, 4)]
    lines: list[str] = []
    last = ""

    def speak(text: str, who: str | None = None) -> None:
        nonlocal last
        if who is None:
            who = stream.pick([p for p in cast if p != last])
        last = who
        lines.append(f"{who}: {text}")

    speak(pen.say("meet.open"), cast[0])
    decided = []
    for i, point in enumerate(brief.points):
        pen.focus(brief.points, i)
        if point.role == "problem":
            speak(pen.say("meet.also" if i else "meet.problem"), cast[1])
            for _ in range(stream.between(1, 3)):
                asked, answered = _exchange(pen, "meet.exchange")
                speak(asked)
                speak(answered, cast[1])
        elif point.role == "cause":
            speak(pen.say("meet.cause"), cast[2])
            speak(pen.say("meet.nod"))
        elif point.role == "fix":
            speak(pen.say("meet.decide"), cast[0])
            decided.append(point.text)
            if stream.chance(0.6):
                speak(cap(pen.fill("{question}")))
                speak(pen.say("meet.reply"), cast[0])
        elif point.role == "fact":
            line = pen.choose("meet.fact", GLUE["meet.fact"])
            speak(pen.fill(line, {"fact": point.text}))
            if stream.chance(0.5):
                speak(pen.say("meet.nod"))
        elif point.role == "head":
            continue
        elif point.role == "table":
            rows = [
                r.strip("|").split("|") for r in point.text.split("\n") if not r.startswith("|---")
            ]
            speak("I'll read the list.", cast[0])
            for row in rows[1:]:
                lines.append(f"{cast[0]}: {row[0].strip()}, {row[1].strip()}.")
        else:
            speak(stop(point.text), cast[0] if brief.topic is None and len(lines) < 2 else None)
            if stream.chance(0.5 if brief.topic else 0.15):
                speak(pen.say("meet.nod"))
        if stream.chance(0.5 if brief.topic else 0.25):
            speak(pen.say("meet.filler"))
    speak(pen.say("meet.close"), cast[0])
    if decided or stream.chance(0.5):
        lines += ["", "Action items"]
        lines += [f"- {cast[1]}: {text}" for text in decided]
        lines.append(f"- {cast[2]}: {pen.say('meet.action')}")
    return {
        "date": brief.day.isoformat(),
        "duration_minutes": 15 + 5 * stream.below(10),
        "participants": "; ".join(cast),
    }, lines


# Code


def github(world: World, brief, pen: Pen):
    stream = pen.stream
    lines: list[str] = []
    for i, point in enumerate(brief.points):
        pen.focus(brief.points, i)
        if point.role == "problem":
            lines += ["## What", pen.say("pr.what"), ""]
        elif point.role == "cause":
            lines += ["## Why", pen.say("pr.why"), ""]
        elif point.role == "fact":
            lines += [
                f"{stream.pick(('Note', 'Config', 'Setting', 'Agreed'))}: {stop(point.text)}",
                "",
            ]
        elif point.role == "head":
            lines.append(f"## {point.text}")
        elif point.role != "fix":
            lines += [_plain(point), ""]
    lines += ["```diff", *_diff(brief, stream), "```", "", "## How it was tested"]
    lines += [f"- {pen.say('pr.test')}" for _ in range(stream.between(1, 3))]
    lines += ["", "---"]
    handles = [name.split()[0].lower() + "-" + name.split()[1][0].lower() for name in brief.people]
    for _ in range(stream.between(2, 4)):
        lines.append(f"**{stream.pick(handles[1:])}**: {pen.say('pr.review')}")
        if stream.chance(0.75):
            lines.append(f"**{handles[0]}**: {pen.say('pr.answer')}")
    state = stream.weighted(("merged", "open", "closed"), (70, 20, 10))
    merged = (
        (brief.day + timedelta(days=stream.between(1, 9))).isoformat() if state == "merged" else ""
    )
    return {
        "repository": brief.path.split("/")[1],
        "author": handles[0],
        "state": state,
        "created": brief.day.isoformat(),
        "merged": merged,
        "reviewers": "; ".join(handles[1:3]),
    }, lines


_NOUNS = "reading batch alarm store door route label sample token queue record window probe shift".split()
_VERBS = "load check merge send skip retry close split count sort drop open".split()


def _diff(brief, stream: Stream) -> list[str]:
    noun, other = stream.sample(_NOUNS, 2)
    verb, verb2 = stream.sample(_VERBS, 2)
    n, m = stream.between(2, 90), stream.between(2, 90)
    name = f"{verb}_{noun}"
    style = stream.below(5)
    if style == 0:
        return [
            f" def {name}({other}s, limit={n}):",
            f"-    for {other} in {other}s:",
            f"+    for {other} in sorted({other}s, key=lambda x: x.{noun}_id):",
            f"         if {other}.{noun} is None:",
            f"-            raise ValueError({other})",
            f"+            {verb2}_{other}({other})",
            "+            continue",
            f"         yield {other}.{noun}[:limit]",
        ]
    if style == 1:
        return [
            f" {noun}:",
            f"-  {other}_limit: {n}",
            f"+  {other}_limit: {m}",
            f"   {verb}_after: {stream.between(2, 60)}s",
            f"+  {verb2}_on_start: {stream.pick(('true', 'false'))}",
        ]
    if style == 2:
        return [
            f"-static uint16_t {name}(uint16_t {other})",
            f"+static int32_t {name}(uint16_t {other}, uint8_t {noun}_id)",
            " {",
            f"-    return {other} * {n} / 10;",
            f"+    if ({other} > {m * 10}u)",
            f"+        return -E{noun.upper()};",
            f"+    return {verb2}({other}, {noun}_id);",
            " }",
        ]
    if style == 3:
        return [
            f" select {noun}_id, count(*) from {other}s",
            f"-where {verb}_at > now() - interval '{n} days'",
            f"+where {verb}_at >= :since and {verb}_at < :until",
            f"+  and not {verb2}ed",
            f" group by {noun}_id",
            f"+having count(*) > {m}",
        ]
    return [
        f" export async function {verb}{cap(noun)}({other}: {cap(other)}) {{",
        f"-  const result = await {verb2}({other})",
        f"+  const result = await {verb2}({other}, {{ timeout: {m}_000 }})",
        f"+  if (result.{noun}s.length === 0) return empty{cap(noun)}",
        f"   return result.{noun}s.slice(0, {n})",
        " }",
    ]


# Pages


def confluence(world: World, brief, pen: Pen):
    stream = pen.stream
    lines: list[str] = []
    if _ordinary(brief):
        lines += [pen.say("page.intro"), ""]
    cells = []
    for fact in brief.facts:
        cells.append(
            f"| {fact.attribute} | {fact.value} | {stream.pick(brief.people).split()[0]}, {stream.pick(MONTHS)} |"
        )
    table = ["| what | value | checked |", "|---|---|---|", *cells]
    if brief.subject:
        table += [
            f"| segment or role | {brief.subject.label} | - |",
            f"| region | {brief.subject.region} | - |",
        ]
    tabled = not (brief.subject and brief.facts)
    mark = "##"  # of the next section; one level lower under the heading of a part
    for i, point in enumerate(brief.points):
        pen.focus(brief.points, i)
        if point.role == "problem":
            lines += [
                f"{mark} {stream.pick(('What you see', 'Symptom', 'Background'))}",
                stop(point.text) + " " + stop(pen.fill("{talk}")),
                "",
            ]
        elif point.role == "cause":
            lines += [
                f"{mark} {stream.pick(('Why', 'The reason', 'What is behind it'))}",
                pen.say("page.cause"),
                "",
            ]
        elif point.role == "fix":
            if not tabled:
                lines += [
                    f"{mark} {stream.pick(('Figures', 'Values in force', 'At a glance'))}",
                    *table,
                    "",
                ]
                tabled = True
            lines += [
                f"{mark} {stream.pick(('What to do', 'Rule', 'Procedure'))}",
                pen.say("page.rule"),
                "",
            ]
            lines += [f"{i}. {pen.say('page.step')}" for i in range(1, stream.between(4, 6))]
            lines.append("")
        elif point.role == "fact":
            if stream.chance(0.5) or brief.kind == "reference":
                lines += [stop(point.text), ""]
        elif point.role == "head":
            lines.append(f"## {point.text}")
            mark = "###" if _ordinary(brief) else "##"
        else:
            lines += [_plain(point), ""]
    if not tabled:
        lines += ["## Figures", *table, ""]
    if brief.kind == "questions" or (_ordinary(brief) and stream.chance(0.5)):
        lines.append("## Questions")
        for _ in range(stream.between(2, 3)):
            question, answer = pen.fill(pen.choose("page.faq", GLUE["page.faq"])).split(" | ")
            lines += [f"**{question}** {answer}", ""]
    if brief.kind != "project" and not any(
        line.startswith("|---") or "\n|---" in line for line in lines
    ):
        lines += ["| page | owner |", "|---|---|", f"| this one | {brief.people[0]} |"]
    return {
        "space": cap(brief.path.split("/")[1]),
        "author": brief.people[0],
        "status": stream.pick(
            ("draft", "in review", "current", "current", "accepted", "outdated?")
        ),
        "last_modified": brief.day.isoformat(),
    }, lines


_COMPOSERS = {
    "slack": slack,
    "gmail": gmail,
    "linear": linear,
    "google_drive": google_drive,
    "hubspot": hubspot,
    "fireflies": fireflies,
    "github": github,
    "jira": jira,
    "confluence": confluence,
}
