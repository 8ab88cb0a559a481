"""A language model as author: the same briefs, written through `ragkit.llm`."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ragkit.errors import ModelError
from ragkit.llm import Client, Failure, Request, Value, dollars, load_prompt
from ragkit.synth import banks
from ragkit.synth.author import AuthorOptions, LeftOut
from ragkit.synth.briefs import Brief
from ragkit.synth.offline import Offline
from ragkit.synth.world import World

PROMPTS = Path(__file__).parent / "prompts"
TRIES = 3  # before a document is left out
SHORTEST = 200  # characters
SIBLINGS = 6
SAMPLE = 200  # briefs that an estimate of a large run is made from
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

    Notes
    -----
    Metadata come from the brief and not from the model. A file name with control characters, a
    path in it, or a text that lacks a value is refused and asked for again, `TRIES` times in all.

    Source: EnterpriseRAG-Bench, sections 4.1 and 7 (control characters), appendix B.
    """

    def __init__(self, name: str, world: World, options: AuthorOptions):
        self.name = name
        self.world = world
        self.client = Client(name, **asdict(options), parameters=PARAMETERS)
        self._frames = Offline(world)
        self._prompt = load_prompt("document", PROMPTS)
        self._agents = dict(banks.rows("agents", "agents"))

    def write_all(self, briefs: Sequence[Brief]) -> list[dict | LeftOut]:
        """Return the documents, in order; a `LeftOut` where the model gave none that could be used.

        Raises
        ------
        ModelError
            If the endpoint did not answer. What it answered is in the ledger.
        """
        frames = [self._frames.write(brief) for brief in briefs]
        requests = self.requests(briefs, frames)
        done: list[dict | LeftOut | None] = [None] * len(briefs)
        reasons = [""] * len(briefs)
        waiting = list(range(len(briefs)))
        for turn in range(TRIES):
            results = self.client.complete([requests[i] for i in waiting])
            self._stop_on_trouble(results)
            again = []
            for i, result in zip(waiting, results, strict=True):
                reason = reasons[i] = self._judge(briefs[i], result)
                if not reason:
                    done[i] = self._document(briefs[i], frames[i], result)
                    continue
                again.append(i)
                if isinstance(result, Value):
                    requests[i] = replace(
                        requests[i].repair(result.message, reason), repeat=turn + 1
                    )
                else:
                    requests[i] = replace(requests[i], repeat=turn + 1)
            waiting = again
            if not waiting:
                break
        for i in waiting:
            done[i] = LeftOut(briefs[i].doc_id, briefs[i].path, reasons[i])
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
                "what was answered is kept in the ledger; run the same command again",
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
    """What a run would cost; `str(cost)` says it in two lines."""

    model: str
    documents: int
    asked: int
    prompt_tokens: int
    completion_tokens: int
    low: float | None
    high: float | None

    def __str__(self) -> str:
        how = "counted" if self.asked == self.documents else f"scaled up from {self.asked:,}"
        price = "price unknown"
        if self.low is not None and self.high is not None:
            price = f"{dollars(self.low)} to {dollars(self.high)}, repairs on top"
        return (
            f"{self.model}: {self.documents:,} documents, one request each\n"
            f"{self.prompt_tokens:,} tokens in ({how}), at most {self.completion_tokens:,} out; "
            f"{price}"
        )


def estimate(plan, options: AuthorOptions) -> Cost:
    """Return what the documents of a `ragkit.synth.pipeline.Plan` would cost, asking nothing."""
    author = ModelAuthor(plan.settings.author, plan.world, options)
    total = plan.settings.documents
    briefs = [brief for group in plan.groups for brief in group.briefs]
    step = max(1, total // SAMPLE)
    chosen = briefs[::step]
    for source, count in plan.volume_counts.items():
        chosen += [plan.volume.brief(source, i) for i in range(0, count, step)]
    frames = [author._frames.write(brief) for brief in chosen]
    sample = author.client.dry_run(author.requests(chosen, frames))
    scale = total / max(1, len(chosen))
    tokens_in = round(sample.prompt_tokens * scale)
    tokens_out = total * PARAMETERS["max_tokens"]
    prices = author.client.prices
    author.client.close()
    return Cost(
        plan.settings.author,
        total,
        len(chosen),
        tokens_in,
        tokens_out,
        prices.cost(plan.settings.author, tokens_in, 0),
        prices.cost(plan.settings.author, tokens_in, tokens_out),
    )


def _neighbourhood(brief: Brief) -> str:
    return brief.group or brief.path.rpartition("/")[0]


def _controls(text: str) -> bool:
    return any(unicodedata.category(letter) == "Cc" for letter in text)
