"""One run of an experiment: retrieve, read, judge, score; or the same without asking.

A dry run and a batch take the same way with clients that ask nothing (`ragkit.llm.Rehearsal`). So
the calls that are announced are those that are made, and a run that was stopped goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from ragkit import checks, datasets, models, schema
from ragkit.datasets.registry import Store
from ragkit.errors import DataError, MissingData, ModelError, UsageError
from ragkit.judging import Options, evaluate, load_judge, read_answers
from ragkit.judging import liverag as claims
from ragkit.judging import wixqa as ratings
from ragkit.judging.inputs import document_texts
from ragkit.llm import Client, Rehearsal, ReplayMiss, Share, dollars, ledger_path, printed
from ragkit.llm.endpoint import is_local
from ragkit.llm.used import record
from ragkit.measures import metrics
from ragkit.models.endpoint import EndpointEncoder
from ragkit.report import experiments, notebook, records
from ragkit.report.experiments import OVERALL, Experiment
from ragkit.report.records import Choice
from ragkit.systems import readers, sweep
from ragkit.systems.agent import BashAgent
from ragkit.systems.readers.endpoint import PARAMETERS
from ragkit.systems.sweep.running import SYSTEMS
from ragkit.systems.sweep.systems import System, build

QUICK = 10_000  # documents that a dry run ranks with BM25
LARGE, SAMPLED = 1000, 300  # of more questions, a dry run takes a part and counts in proportion
EXPANDED = {".zip": 12, ".parquet": 8}  # bytes of memory for a byte of a file; others take 4
CORPUS = {"bleu": "corpus_bleu"}  # names of printed metrics that are no means over questions


@dataclass(frozen=True)
class Settings:
    """How an experiment is run.

    Parameters
    ----------
    profile, data : str
        As of `ragkit.datasets.load`.
    limit : int
        Questions; 0 for all.
    mode : {"run", "dry", "batch"}
    budget : float, optional
        US dollars for everything that is asked.
    ledger, replay, concurrency, timeout
        As of `ragkit.llm.Client`.
    readers : tuple of str
        "NAME" to run only some of the declared ones; "NAME=MODEL" for a stand-in in the cells of
        NAME; "MODEL" for a system of its own, which fills no cell. Default: all declared ones.
    retrievers : tuple of str
        The same, with systems of `notebooks/systems.toml`.
    answers : tuple of str
        "NAME=FILE": answers of a system that somebody else ran, to be judged like the others.
    judge : str
        Another judge than the declared one.
    max_tokens : int
        Where readers' answers are cut, a departure from the paper; 0 for the declared limit.
    note : str
        What else a record should say, such as the weights that a server of yours answers with.
    """

    profile: str = "paper"
    data: str = ""
    limit: int = 0
    mode: str = "run"
    budget: float | None = None
    ledger: Path | None = None
    replay: bool | None = None
    concurrency: int = 8
    timeout: float = 120.0
    readers: tuple[str, ...] = ()
    retrievers: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    judge: str = ""
    max_tokens: int = 0
    note: str = ""


class Trial:
    """An experiment with its settings; `run` yields the name of each system that is done."""

    def __init__(self, experiment: Experiment, settings: Settings | None = None, *, ranks=True):
        self.experiment, self.settings = experiment, settings or Settings()
        self.scale = 1.0  # all questions over those that a dry run takes
        self.ranks = ranks  # whether a dry run ranks what can be ranked quickly
        self.clients: dict[str, Client] = {}
        self.encoders: list[EndpointEncoder] = []
        self.to_encode: list[tuple[EndpointEncoder, list[str]]] = []
        self.notes: list[str] = []
        self.lost: dict[str, dict[str, str]] = {}  # retriever to questions without a result
        self.spread: list[dict] = []  # of the repeated verdicts on the system judged last
        self._systems = {one.name: one for one in sweep.load(SYSTEMS)}
        self.retrievers = list(self._choices(self.settings.retrievers, experiment.retrievers))
        self.readers = list(self._choices(self.settings.readers, experiment.readers))

    # -- what runs -----------------------------------------------------------------------------

    def _choices(self, given: Iterable[str], declared: Mapping[str, Any]) -> Iterator[Choice]:
        """Yield what was chosen: NAME, NAME=OTHER or OTHER; by default every declared NAME."""
        reading = declared is self.experiment.readers
        for one in given or declared:
            row, _, other = one.partition("=") if one.split("=")[0] in declared else ("", "", one)
            own = declared.get(row)
            wanted = other or own
            if reading:
                spec = {"kind": wanted} if isinstance(wanted, str) else dict(wanted)
                if not spec["kind"].startswith(("openai:", "extractive")):
                    known = f"one of {', '.join(declared)}, NAME=openai:MODEL, or openai:MODEL"
                    raise UsageError(f"no reader {one!r}", known)
                if not self.experiment.retrievers:
                    spec.setdefault("prompt", "closed_book")
                told, was = spec["kind"], own and own["kind"]
            else:
                told, was = wanted, own
                spec = self._systems[checks.choice(wanted, "retriever", self._systems)]
            departs = (f"{told} for {was}",) if was and told != was else ()
            name = f"{row}={told}" if departs else row or told
            if reading and (most := self.settings.max_tokens) and spec["kind"] != "extractive":
                kept = spec.get("parameters", PARAMETERS)
                limit = "max_tokens" if "max_tokens" in kept else "max_completion_tokens"
                spec = spec | {"parameters": {**kept, limit: most}}
                departs += (f"answers of at most {most:,} tokens",)
            yield Choice(row, name, spec, departs)

    @property
    def judge_spec(self) -> dict[str, Any]:
        if self.settings.judge:
            return {"kind": self.settings.judge, "parameters": PARAMETERS}
        return dict(self.experiment.judge)

    @cached_property
    def dataset(self) -> datasets.Dataset:
        """The questions asked, and the documents; `DataError` if they do not fit into memory."""
        chosen, own = self.experiment, self.settings
        if own.profile == "paper":
            need = [Store(own.data or None).find(file) for file in datasets.files(chosen.paper)]
            check_memory(
                sum(f.path.stat().st_size * EXPANDED.get(f.path.suffix, 4) for f in need if f),
                f"the files of {chosen.paper}",
            )
        found = datasets.load(chosen.paper, profile=own.profile, data=own.data or None)
        asked = found.questions
        if chosen.questions:
            asked = asked[asked["type"] == chosen.questions]
        asked = asked[asked["answer"].map(bool)]
        if bins := chosen.bins:
            asked = asked.assign(type=OVERALL)
            if bins["column"] in asked:
                edges = [-float("inf"), *bins["edges"], float("inf")]
                cut = pd.cut(asked[bins["column"]], edges, labels=bins["names"], right=False)
                asked["type"] = cut.astype(str)
        if asked.empty:
            raise MissingData(f"{found.label} has no question for {chosen.name} with an answer")
        frames = found.frames | {"questions": asked.reset_index(drop=True)}
        found = replace(found, frames=frames).part(questions=own.limit)
        every = len(found.questions)
        if own.mode == "dry" and every > LARGE:
            self.scale = every / SAMPLED
            self.notes.append(f"counted on {SAMPLED:,} of {every:,} questions")
            found = found.part(questions=SAMPLED)
        return found

    @property
    def questions(self) -> pd.DataFrame:
        return self.dataset.questions

    @cached_property
    def documents(self) -> pd.DataFrame:
        empty = pd.DataFrame(columns=list(schema.COLUMNS["documents"]), dtype=object)
        return self.dataset.frames.get("documents", empty)

    def lacks(self) -> list[str]:
        """Return what is missing: data, weights and keys, each with what to do."""
        said = []
        try:
            _ = self.dataset
            if self.experiment.retrievers and self.documents.empty:
                said.append(f"the documents of {self.experiment.paper} are not here")
        except (MissingData, DataError) as error:
            said.append(f"{error.message} ({error.hint})" if error.hint else error.message)
        named = {name for one in self.retrievers for name in one.chosen.models}
        for name in sorted(one for one in named if not one.startswith("openai:")):
            try:
                models.registry.need(models.registry.card(name))
            except ModelError as error:
                said.append(f"{error.message} ({error.hint})")
        specs = [*(one.chosen for one in self.readers), self.judge_spec]
        specs += [{"kind": name} for name in sorted(named)]
        for spec in specs:
            if spec["kind"].startswith("openai:") and not self.settings.replay:
                options = {"environment": spec.get("environment", "OPENAI")}
                try:
                    key = Client(spec["kind"], ledger=None, **options).endpoint.lacks
                except ModelError as error:
                    key = f"{error.message} ({error.hint})"
                said += [f"no key: {key}"] if key else []
        return list(dict.fromkeys(said))

    # -- clients and money ---------------------------------------------------------------------

    def client(self, spec: Mapping[str, Any], parameters: Mapping | None = None) -> Client:
        """Return the client of a declaration, with what is left of the budget."""
        name, own = repr(sorted(spec.items(), key=str)), self.settings
        if name not in self.clients:
            options = {"ledger": ledger_path(own.ledger), "concurrency": own.concurrency}
            options |= {"timeout": own.timeout, "budget": own.budget, "replay": own.replay}
            options["parameters"] = spec.get("parameters", parameters)
            options["environment"] = spec.get("environment", "OPENAI")
            if own.mode != "run":
                kept = options["ledger"].exists() or own.mode == "batch"
                options |= {"ledger": options["ledger"] if kept else None, "budget": None}
                guesses = self.questions["answer"].tolist()
                options["guesses"] = guesses if own.mode == "dry" else None
            kind = Client if own.mode == "run" else Rehearsal
            self.clients[name] = kind(spec["kind"], **options)
        client = self.clients[name]
        if own.budget is not None and own.mode == "run":
            client.budget = own.budget - self.spent + client.spent
        return client

    @property
    def remote(self) -> bool:
        """Whether an endpoint on another machine is asked."""
        urls = [one.endpoint.url for one in self.clients.values()]
        urls += [one.endpoint.url for one, _ in self.to_encode]
        return not all(is_local(url) for url in urls)

    @property
    def spent(self) -> float:
        """US dollars that this run has spent."""
        return sum(one.spent for one in (*self.clients.values(), *self.encoders))

    def _settled(self, client: Client) -> None:
        """Raise `ModelError` if requests have no answer that a later run may get."""
        if client.open and self.settings.mode == "run":
            first, hint = client.open[0], "what was answered is kept: the same command goes on"
            if first.kind == "budget":
                hint += " with a larger --budget"
            said = f"{len(client.open):,} requests to {client.model} have no answer"
            raise ModelError(f"{said}; the first: {first.kind}: {first.reason}", hint)

    def close(self) -> None:
        """Close the ledgers."""
        for client in self.clients.values():
            client.close()

    # -- retrieve ------------------------------------------------------------------------------

    def lists(self, one: Choice | None) -> pd.DataFrame | None:
        """Return the ranked lists of a retriever, None if it cannot be part of a batch.

        A dry run draws documents where ranking takes long or costs.
        """
        if one is None:
            return pd.DataFrame(columns=list(schema.COLUMNS["runs"]), dtype=object)
        bare = replace(one.chosen, reader=None)
        if bare.retriever["kind"] == "agent" and bare.paid:
            return self._searched(one)
        if bare.paid:
            return self._embedded(one, bare)
        if self.settings.mode == "dry" and not self._quick(bare):
            return self._drawn(one)
        found = sweep.run([bare], self.documents, self.questions, k=self.experiment.top)
        if len(found.failures):
            raise ModelError(f"{one.name} failed: {found.failures['reason'].iloc[0]}")
        return found.runs.assign(system=one.name)

    def _quick(self, system: System) -> bool:
        if not self.ranks:
            return False
        if system.retriever["kind"] == "bm25" and len(self.documents) <= QUICK:
            return True
        plan = sweep.plan([system], self.documents, self.questions, k=self.experiment.top)
        return not plan["to_rank"].any()

    def _drawn(self, one: Choice) -> pd.DataFrame:
        self.notes.append(f"{one.name} has not ranked yet: its documents are drawn at random")
        ids, rows = self.documents["doc_id"].tolist(), []
        for name in self.questions["question_id"]:
            drawn = random.Random(f"{one.name}/{name}")
            shown = drawn.sample(ids, min(self.experiment.top, len(ids)))
            rows += [(one.name, name, rank, doc, 1.0 / rank) for rank, doc in enumerate(shown, 1)]
        return pd.DataFrame(rows, columns=list(schema.COLUMNS["runs"]))

    def _embedded(self, one: Choice, system: System) -> pd.DataFrame:
        """Search with the vectors of an endpoint, which are paid once and kept."""
        retriever, top = build(system), self.experiment.top
        encoder, rows = retriever.retriever.encoder, self.documents[["title", "text"]].to_numpy()
        need = len(rows) * 8 * (encoder.dimension or 1536)
        check_memory(need, f"the vectors of {len(rows):,} documents")
        if self.settings.mode == "dry":
            texts = [*map("\n\n".join, rows), *self.questions["text"]]
            self.to_encode.append((encoder, texts))
            if encoder.estimate(texts)[0]:
                return self._drawn(one)
        budget = self.settings.budget
        encoder.budget = None if budget is None else budget - self.spent
        self.encoders.append(encoder)
        return retriever.fit(self.documents).search(self.questions, top).assign(system=one.name)

    def _searched(self, one: Choice) -> pd.DataFrame | None:
        """Search with an agent that a model drives."""
        spec, top, mode = dict(one.chosen.retriever), self.experiment.top, self.settings.mode
        del spec["kind"]
        asked = {"kind": spec["policy"], "parameters": spec.pop("parameters", None)}
        if mode == "batch":
            self.notes.append(f"{one.name} decides step by step: run it without --batch")
            return None
        agent = BashAgent(**spec, client=self.client(asked))
        if mode == "dry":
            first = [agent.first_request(text, top) for text in self.questions["text"]]
            begun = not agent.client.missing(first)
            agent.client.complete(first)
            kept = {"ledger": agent.client.ledger, "parameters": asked["parameters"]}
            agent.client = Client(spec["policy"], replay=True, **kept)
            try:
                if not begun:
                    raise ReplayMiss("")
                return agent.fit(self.documents).search(self.questions, top).assign(system=one.name)
            except ReplayMiss:
                said = f"{one.name} asks 1 to {agent.steps + 1} times a question; counted once"
                self.notes.append(said)
                return self._drawn(one)
        runs = agent.fit(self.documents).search(self.questions, top)
        self._settled(agent.client)
        self.lost[one.name] = agent.missing_
        for name, reason in agent.missing_.items():
            self.notes.append(f"{one.name} has no result for {name}: {reason}")
        return runs.assign(system=one.name)

    # -- read and judge ------------------------------------------------------------------------

    def run(self, say: Callable[[str], None] = lambda words: None) -> list[Path]:
        """Run all systems; return the paths of their records (none of a dry run or a batch).

        Raises
        ------
        MissingData
            If data, weights or a key is missing: nothing was asked then.
        ModelError
            If an endpoint cannot be used, a budget is spent or requests have no answer. What was
            answered is kept: the same call goes on.
        """
        if missing := self.lacks() if self.settings.mode == "run" else []:
            first = f"{self.experiment.name} cannot run: {missing[0]}"
            raise MissingData(first, "; ".join(missing[1:]) or None)
        written = []
        for name, retriever, reader, answers, calls in self._answered():
            if answers["failure"].astype(str).str.startswith("pending").any():
                continue  # judged once the batch has answered
            if self.settings.mode == "run" and answers["answer"].isna().all():
                self.notes.append(f"{name} answered no question: {answers['failure'].iloc[0]}")
                continue
            with record() as judged:
                scores, extra, judge = self._judged(answers, name)
            if self.settings.mode == "run":
                ran = records.Ran(self.experiment, self.dataset, retriever, reader, judge)
                row = ran.record(name, answers, scores, extra, self.spread)
                row["notes"] += [self.settings.note] if self.settings.note else []
                row |= {"commit": notebook.commit(), "calls": [*calls, *judged]}
                profile = self.settings.profile
                written.append(experiments.save(profile, row, answers, scores))
                say(f"{name}: {written[-1]}")
        return written

    def _answered(self) -> Iterator[tuple]:
        """Yield name, retriever, reader, answers and calls of each system."""
        for retriever in self.retrievers or [None]:
            with record() as searched:
                runs = self.lists(retriever)
            for reader in self.readers if runs is not None else ():
                name = f"{retriever.name}+{reader.name}" if retriever else reader.name
                spec = dict(reader.chosen)
                made = {"prompt": spec["prompt"]} if "prompt" in spec else {}
                if spec["kind"].startswith("openai:"):
                    made["client"] = self.client(spec, PARAMETERS)
                own = readers.reader(spec["kind"], **made)
                lost = self.lost.get(retriever.name, {}) if retriever else {}
                asked = self.questions[~self.questions["question_id"].isin(lost)]
                options = {"top": self.experiment.top, "system": name}
                with record() as read:
                    found = own.answer(asked, self.documents, runs, **options)
                if lost:  # missing, not answered from no document
                    rows = {"question_id": [*lost], "failure": [*lost.values()], "answer": None}
                    rows |= {"doc_ids": [()] * len(lost), "abstained": False, "system": name}
                    found = pd.concat([found, pd.DataFrame(rows)], ignore_index=True)
                if "client" in made:
                    self._settled(made["client"])
                reader.model = own
                yield name, retriever, reader, found, [*searched, *read]
        for given in self.settings.answers:
            name, _, file = given.partition("=")
            if not file:
                raise UsageError(f"no file in --answers {given!r}", "as in --answers NAME=FILE")
            found = read_answers(file, self.questions, skip_bad=True)[0].assign(system=name)
            yield name, None, None, found.assign(failure=None), []

    def _judge(self):
        spec, chosen = self.judge_spec, {}
        own = printed.known(self.experiment.paper)
        if not spec["kind"].startswith("openai:"):
            return load_judge(spec["kind"])
        judge = load_judge(spec["kind"], client=self.client(spec))
        for kind, name in self.experiment.prompts.items():
            if own[name].text() is not None:
                chosen[kind] = own[name].prompt(judge.prompt(kind))
        judge.prompts = chosen
        return judge

    def _judged(self, answers: pd.DataFrame, name: str):
        """Return item_id, metric and score of every answer, corpus metrics, and the judge."""
        wanted, asked, judge = self.experiment.metrics, self.questions, self._judge()
        free = wanted if self.settings.mode == "run" else ()  # nothing is asked for these
        present = answers.dropna(subset="answer")
        parts, extra = [], []
        plain = [m for m in free if m in metrics.METRICS and not self.experiment.kinds(m)]
        if plain:
            found = metrics.score_answers(answers, asked, metrics=plain)
            parts.append(found.drop(columns="subject_id"))
        for metric in CORPUS.keys() & set(free):
            table = metrics.summarise_answers(present, asked, metrics=[CORPUS[metric]])
            table = table.assign(metric=metric, type=OVERALL, of=len(asked))
            extra += table[["metric", "type", "of", "value", "low", "high", "n"]].to_dict("records")
        if len(present):
            parts += self._verdicts(answers, present, judge, name)
        if hasattr(judge, "client"):
            self._settled(judge.client)
        empty = pd.DataFrame(columns=["item_id", "metric", "score"])
        scores = pd.concat(parts, ignore_index=True)[[*empty]] if parts else empty
        return scores[scores["metric"].isin(wanted)], extra, judge

    def _verdicts(self, answers, present, judge, name) -> list[pd.DataFrame]:
        wanted, asked, chosen = self.experiment.metrics, self.questions, self.experiment
        if chosen.paper == "liverag":
            found = claims.correctness(present, asked, judge)
            long = found.melt(["question_id"], list(wanted), "metric", "score")
            return [long.rename(columns={"question_id": "item_id"})]
        if chosen.paper == "wixqa":
            options, parts = {"repeat": chosen.repeat}, []
            if "factuality" in wanted:
                parts.append(ratings.factuality(present, asked, judge, **options))
            if "context_recall" in wanted:
                shown = {"cutoff": chosen.top, **options}
                parts.append(ratings.context_recall(answers, asked, self.documents, judge, **shown))
            names = {"question_id": "item_id", "value": "score"}
            return [part.rename(columns=names) for part in parts]
        # A question whose answer failed is missing, not wrong.
        asked = asked[asked["question_id"].isin(present["question_id"])]
        texts = None
        if chosen.panel and "invalid_extra_documents" in wanted:
            needed = set(present["doc_ids"].explode()) | set(asked["gold_doc_ids"].explode())
            texts = document_texts(self.documents[self.documents["doc_id"].isin(needed)])
        panel = [judge] * chosen.panel if texts is not None else None
        options = Options(texts, panel, correct_gold=False, repeat=chosen.repeat)
        found = evaluate(asked, present[present["system"] == name], judge, options)
        self.spread = found.data["summary"] if chosen.repeat > 1 else []
        return [found.scores.drop(columns="subject_id")]

    # -- what it costs -------------------------------------------------------------------------

    def shares(self) -> list[Share]:
        """Return what a dry run or a batch would ask, model by model and purpose by purpose."""
        found = [share for client in self.clients.values() for share in client.shares()]
        if self.scale > 1:
            found = [Share(*one[:2], *map(self._scaled, one[2:])) for one in found]
        for encoder, texts in self.to_encode:
            calls, tokens, cost = encoder.estimate(texts)
            every = len(set(texts))
            made = (every, every - calls, calls, tokens, 0, cost, cost)
            found.append(Share(encoder.name, "vectors", *made))
        return found

    def _scaled(self, number: float | None) -> float | None:
        if number is None:
            return None
        return round(self.scale * number) if isinstance(number, int) else self.scale * number


def check_memory(need: int, what: str) -> None:
    """Raise `DataError` if so many bytes are more than this machine has free."""
    free = psutil.virtual_memory().available
    if need > free:
        raise DataError(
            f"{what} take about {need / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free",
            "use a larger machine, or another retriever (--retriever); nothing was asked",
        )


def totals(shares: Iterable[Share]) -> str:
    """Return calls, tokens and money of shares in a sentence; an unknown price is named."""
    shares = list(shares)
    calls, inside, out = (
        sum(getattr(one, key) for one in shares) for key in ("calls", "tokens_in", "tokens_out")
    )
    if not calls:
        return "0 calls; nothing to pay"
    unknown = sorted({one.model for one in shares if one.cost is None and one.calls})
    cost = sum(one.cost or 0.0 for one in shares)
    most = [one.most for one in shares if one.cost is not None and one.calls]
    said = f"about {dollars(cost)}"
    if None in most:
        said += ", no limit on output tokens"
    elif sum(most) > cost:
        said += f", at most {dollars(sum(most))}"
    if unknown:
        names = ", ".join(name.removeprefix("openai:") for name in unknown)
        known = f"; the others {said}" if len(unknown) < len({one.model for one in shares}) else ""
        said = f"price unknown for {names}{known}"
    return f"{calls:,} calls, {inside:,} tokens in, about {out:,} out; {said}"
