"""A language model as author: the same briefs, written through `ragkit.llm`."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ragkit.errors import ModelError, UsageError
from ragkit.llm import Failure, Request, Value, dollars, load_prompt
from ragkit.llm.prices import request_tokens
from ragkit.synth import banks
from ragkit.synth.author import TOGETHER, Author, AuthorOptions, LeftOut, check_author
from ragkit.synth.briefs import Brief
from ragkit.synth.offline import Offline
from ragkit.synth.world import World

PROMPTS = Path(__file__).parent / "prompts"
TRIES = 3  # before a document is left out
SHORTEST = 200  # characters
SIBLINGS = 6
SAMPLE = 200  # requests whose tokens are counted for an estimate
REPAIRS = 0.05  # of the requests are expected to be asked again, before there are answers
ENOUGH = 20  # documents with answers that tell more
LETTERS = 4.2  # characters of a token
PARAMETERS = {"max_tokens": 2500}
# The model did answer, and would answer so again: the document is left out. Everything else is
# the endpoint's trouble, and the run stops so that it can be resumed.
ANSWERED = {"invalid", "refused", "filtered", "rejected"}
# Characters to aim for: less than the paper's means, in their order.
LENGTHS = {
    "slack": 1800,
    "gmail": 3000,
    "linear": 2400,
    "google_drive": 3200,
    "hubspot": 1600,
    "fireflies": 4500,
    "github": 2400,
    "jira": 2600,
    "confluence": 4000,
}
SCHEMA = {
    "type": "object",
    "properties": {
        "title": {"type": "string", "minLength": 3, "maxLength": 200},
        "file_name": {"type": "string", "minLength": 1, "maxLength": 120},
        "content": {"type": "string", "minLength": 1},
    },
    "required": ["title", "file_name", "content"],
    "additionalProperties": False,
}


class ModelAuthor:
    """Ask a model for each document; check that it says what it has to.

    Parameters
    ----------
    name : str
        `openai:MODEL`.
    world : World
    options : AuthorOptions

    Attributes
    ----------
    asked, settled : int
        Requests with an answer, and documents that are written or left out by them.

    Notes
    -----
    Metadata come from the brief and not from the model. A file name with control characters, a
    path in it, or a text that lacks a value is refused and asked for again, `TRIES` times in all.

    Source: EnterpriseRAG-Bench, sections 4.1 and 7 (control characters), appendix B.
    """

    def __init__(self, name: str, world: World, options: AuthorOptions):
        self.name = name
        self.world = world
        self.client = options.client(name, PARAMETERS)
        self.asked = self.settled = 0
        self.frames = Offline(world)
        self._prompt = load_prompt("document", PROMPTS)
        self._agents = dict(banks.rows("agents", "agents"))

    def write_all(self, briefs: Sequence[Brief]) -> list[dict | LeftOut]:
        """Return the documents, in order; a `LeftOut` where the model gave none that could be used.

        Raises
        ------
        ModelError
            If the endpoint did not answer. What it answered is in the ledger.
        """

        def ask(requests):
            results = self.client.complete(requests)
            self._stop_on_trouble(results)
            return results

        return self._settle(briefs, ask)

    def pending(self, briefs: Sequence[Brief]) -> list[Request]:
        """Return the requests, repairs included, that the ledger has no answer to."""
        if not len(self.client.ledger):
            return self.requests(briefs, [self.frames.write(brief) for brief in briefs])
        lacking: list[Request] = []

        def recall(requests):
            for request in requests:
                if self.client.missing([request]):
                    lacking.append(request)
                    yield None
                else:
                    yield self.client.complete([request])[0]

        self._settle(briefs, recall)
        return lacking

    def _settle(self, briefs: Sequence[Brief], ask: Callable) -> list[dict | LeftOut | None]:
        """Return the documents that `ask` leads to; None where it has no answer yet."""
        frames = [self.frames.write(brief) for brief in briefs]
        requests = self.requests(briefs, frames)
        done: list[dict | LeftOut | None] = [None] * len(briefs)
        waiting = list(range(len(briefs)))
        for turn in range(1, TRIES + 1):
            results = ask([requests[i] for i in waiting]) if waiting else ()
            again = []
            for i, result in zip(waiting, results, strict=True):
                if result is None:
                    continue
                brief, reason = briefs[i], self._judge(briefs[i], result)
                self.asked += 1
                if reason and turn < TRIES:
                    again.append(i)
                    if isinstance(result, Value):
                        requests[i] = requests[i].repair(result.message, reason)
                    requests[i] = replace(requests[i], repeat=turn)
                    continue
                self.settled += 1
                left = LeftOut(brief.doc_id, brief.path, reason)
                done[i] = left if reason else self._document(brief, frames[i], result)
            waiting = again
        return done

    def requests(self, briefs: Sequence[Brief], frames: Sequence[dict]) -> list[Request]:
        """Return what is asked for the briefs of one batch."""
        by_folder: dict[str, list[str]] = {}
        for brief in briefs:
            by_folder.setdefault(_neighbourhood(brief), []).append(brief.title)
        made = []
        for brief, frame in zip(briefs, frames, strict=True):
            near = [t for t in by_folder[_neighbourhood(brief)] if t != brief.title][:SIBLINGS]
            fields = {
                k: v
                for k, v in frame.items()
                if k not in ("path", "doc_id", "source_type", "title", "content")
            }
            values = {
                "overview": self._overview(),
                "agents": self._agents[brief.source],
                "source": brief.source,
                "folder": brief.path.rpartition("/")[0],
                "title": brief.title,
                "day": brief.day.isoformat(),
                "people": ", ".join(brief.people),
                "metadata": "; ".join(f"{k}: {v}" for k, v in fields.items()),
                "points": "\n".join(f"- {p.role}: {p.text}" for p in brief.points),
                "values": "\n".join(f"- {value}" for value in required(brief)) or "- none",
                "siblings": "\n".join(f"- {title}" for title in near) or "- none",
                "length": LENGTHS[brief.source],
            }
            made.append(self._prompt.request(values, schema=SCHEMA, purpose="author"))
        return made

    def _overview(self) -> str:
        world = self.world
        themes = "; ".join(f"{i.title} ({i.goal})" for i in world.initiatives)
        return (
            f"{world.company} of {world.seat} makes {world.product}: sensors and software for "
            f"cold stores. {world.mission} {world.model} Initiatives: {themes}."
        )

    def _stop_on_trouble(self, results: Sequence[Value | Failure]) -> None:
        failed = [r for r in results if isinstance(r, Failure)]
        trouble = [r for r in failed if r.kind not in ANSWERED]
        if len(failed) == len(results) > 1 and all(r.kind == "rejected" for r in failed):
            trouble = failed  # it is not the documents that are wrong
        if trouble:
            raise ModelError(
                f"{len(trouble):,} of {len(results):,} documents have no answer from {self.name}: "
                f"{trouble[0].reason}",
                f"what was answered is kept in the ledger {self.client.ledger.path}; "
                "run the same command again",
            )

    def _judge(self, brief: Brief, result: Value | Failure) -> str:
        """Return what is wrong with an answer, or an empty string."""
        if isinstance(result, Failure):
            return f"{result.kind}: {result.reason}"
        answer = result.data
        name = answer["file_name"].strip()
        if _controls(name) or _controls(answer["title"]):
            return "the file name or the title has control characters"
        if not name or "/" in name or "\\" in name or name.startswith("."):
            return f"the file name {name!r} is not a plain name"
        content = answer["content"]
        if _controls(content.replace("\n", "").replace("\t", "")):
            return "the content has control characters"
        if len(content.strip()) < SHORTEST:
            return f"the content has {len(content.strip())} characters, at least {SHORTEST} wanted"
        text = content.lower()
        for value in required(brief):
            if value.lower() not in text:
                return f"the content does not say {value!r}"
        return ""

    def _document(self, brief: Brief, frame: dict, result: Value) -> dict:
        answer = result.data
        folder, _, name = brief.path.rpartition("/")
        if brief.source not in ("linear", "jira"):  # whose files are called by their keys
            name = answer["file_name"].strip().removesuffix(".json") + ".json"
        return {
            **frame,
            "path": f"{folder}/{name}",
            "title": answer["title"].strip(),
            "content": answer["content"].strip(),
        }


def required(brief: Brief) -> list[str]:
    """Return the strings that a document has to contain: values of facts and halves of one."""
    values = [fact.value for fact in brief.facts]
    values += [brief.split[name] for name in ("first", "last") if brief.split]
    return list(dict.fromkeys(values))


@dataclass(frozen=True)
class Cost:
    """What a run would cost; `str(cost)` says it in two lines.

    Parameters
    ----------
    model : str
    documents : int
        Documents that the ledger does not hold.
    requests, most : int
        Requests expected with repairs, and the most that repairs can lead to.
    tokens : tuple of int
        In and out, for the requests expected.
    dollars, most_dollars : float or None
        For the requests expected, and if each is repaired as often as it may be, at full length;
        None if the price is unknown.
    """

    model: str
    documents: int
    requests: int
    most: int
    tokens: tuple[int, int]
    dollars: float | None
    most_dollars: float | None

    def __str__(self) -> str:
        price = "price unknown"
        if self.dollars is not None:
            price = f"about {dollars(self.dollars)}, at most {dollars(self.most_dollars)}"
        return (
            f"{self.model}: {self.documents:,} documents to write, about {self.requests:,} requests "
            f"with repairs, at most {self.most:,}\n"
            f"about {self.tokens[0]:,} tokens in and {self.tokens[1]:,} out: {price}"
        )


def estimate(author: ModelAuthor, batches: Iterable[Sequence[Brief]], later: int = 0) -> Cost:
    """Return what documents would cost, asking nothing.

    Requests that the ledger answers cost nothing. The share of repairs is that of the answers in
    the ledger, or `REPAIRS` where it holds fewer than `ENOUGH` documents.

    Parameters
    ----------
    author : ModelAuthor
    batches : iterable of sequence of Brief
        As the author will be asked for them.
    later : int, default=0
        Documents whose briefs are not known yet.
    """
    lacking, chosen = 0, []
    for batch in batches:
        lacking += len(author.pending(batch))
        first = batch[:: max(1, TOGETHER // SAMPLE)]
        chosen += author.requests(first, [author.frames.write(brief) for brief in first])
    documents = lacking + later
    repairs = author.asked / author.settled - 1 if author.settled >= ENOUGH else REPAIRS
    requests = round(documents * (1 + repairs))
    most = documents * TRIES * 2  # the client may repair an answer that breaks the schema, once
    chosen = chosen[:: max(1, len(chosen) // SAMPLE)]
    each = sum(request_tokens(r.plain(author.name))[0] for r in chosen)
    said = sum(map(_length, chosen)) / LETTERS
    tokens = tuple(round(requests * n / max(1, len(chosen))) for n in (each, said))
    prices, limit = author.client.prices, PARAMETERS["max_tokens"]
    # A repair repeats the answer, which is at most as long as the limit.
    dear = prices.cost(author.name, most * (tokens[0] // max(1, requests) + limit), most * limit)
    cost = prices.cost(author.name, *tokens)
    return Cost(author.name, documents, requests, most, tokens, cost, dear)


def _length(request: Request) -> int:
    return int(re.findall(r"Aim for (\d+) characters", request.messages[1]["content"])[-1])


def _neighbourhood(brief: Brief) -> str:
    return brief.group or brief.path.rpartition("/")[0]


def _controls(text: str) -> bool:
    return any(unicodedata.category(letter) == "Cc" for letter in text)


def make_author(name: str, world: World, options: AuthorOptions | None = None) -> Author:
    """Return the author called `offline` or `openai:MODEL`.

    Parameters
    ----------
    name : str
    world : World
    options : AuthorOptions, optional
        For a model.

    Raises
    ------
    UsageError
        If there is no such author, or the offline author is given options.
    """
    check_author(name)
    if name == "offline":
        if options is not None:
            raise UsageError("the offline author takes no options of a model")
        return Offline(world)
    return ModelAuthor(name, world, options or AuthorOptions())
