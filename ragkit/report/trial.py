"""One run of an experiment: retrieve, read, judge, score; or the same without asking.

A dry run and a batch take the same way with clients that ask nothing (`ragkit.llm.Rehearsal`). So
the calls that are announced are those that are made, and a run that was stopped goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd
import psutil

from ragkit import checks, datasets, models, schema
from ragkit.datasets.registry import Store
from ragkit.errors import DataError, MissingData, ModelError, RagkitError, UsageError
from ragkit.judging import Options, evaluate, load_judge, read_answers
from ragkit.judging import liverag as claims
from ragkit.judging import wixqa as ratings
from ragkit.judging.inputs import document_texts
from ragkit.llm import Client, Rehearsal, ReplayMiss, Share, dollars, ledger_path, printed
from ragkit.llm.endpoint import is_local
from ragkit.llm.used import record
from ragkit.measures import metrics
from ragkit.models.endpoint import EndpointEncoder
from ragkit.report import experiments, notebook
from ragkit.report.experiments import OVERALL, Experiment
from ragkit.report.records import Choice, Ran
from ragkit.systems import readers, sweep
from ragkit.systems.agent import BashAgent
from ragkit.systems.readers.endpoint import PARAMETERS
from ragkit.systems.sweep.running import SYSTEMS
from ragkit.systems.sweep.systems import System, build

QUICK = 10_000  # documents that a dry run ranks with BM25
LARGE, SAMPLED = 1000, 300  # of more questions, a dry run takes a part and counts in proportion
EXPANDED = {".zip": 12, ".parquet": 8}  # bytes of memory for a byte of a file; others take 4
CORPUS = {"bleu": "corpus_bleu"}  # names of printed metrics that are no means over questions


@dataclass
class Trial:
    """An experiment and how it is run.

    Parameters
    ----------
    experiment : Experiment
    profile, data : str
        As of `ragkit.datasets.load`.
    limit : int
        Questions; 0 for all.
    mode : {"run", "dry", "batch"}
    budget : float, optional
        US dollars for everything that is asked.
    ledger, replay, concurrency, timeout
        As of `ragkit.llm.Client`.
    readers : sequence of str
        "NAME" to run only some of the declared ones; "NAME=MODEL" for a stand-in in the cells of
        NAME; "MODEL" for a system of its own, which fills no cell. Default: all declared ones.
    retrievers : sequence of str
        The same, with systems of `notebooks/systems.toml`.
    answers : sequence of str
        "NAME=FILE": answers of a system that somebody else ran, to be judged like the others.
    judge : str
        Another judge than the declared one.
    max_tokens : int
        Where readers' answers are cut, a departure from the paper; 0 for the declared limit.
    note : str
        What else a record should say, such as the weights that a server of yours answers with.
    ranks : bool
        Whether a dry run ranks what can be ranked quickly.
    """

    experiment: Experiment
    _: KW_ONLY
    profile: str = "paper"
    data: str = ""
    limit: int = 0
    mode: str = "run"
    budget: float | None = None
    ledger: Path | None = None
    replay: bool | None = None
    concurrency: int = 8
    timeout: float = 120.0
    readers: Sequence = ()
    retrievers: Sequence = ()
    answers: Sequence[str] = ()
    judge: str = ""
    max_tokens: int = 0
    note: str = ""
    ranks: bool = True

    def __post_init__(self):
        self.scale = 1.0  # all questions over those that a dry run takes
        self.clients: dict[str, Client] = {}
        self.encoders: list[EndpointEncoder] = []
        self.to_encode: list[tuple[EndpointEncoder, list[str]]] = []
        self.notes: list[str] = []
        self.lost: dict[str, dict[str, str]] = {}  # retriever to questions without a result
        self._systems = {one.name: one for one in sweep.load(SYSTEMS)}
        self.retrievers = list(self._choices(self.retrievers, self.experiment.retrievers))
        self.readers = list(self._choices(self.readers, self.experiment.readers))

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
            if reading and (most := self.max_tokens) and spec["kind"] != "extractive":
                kept = spec.get("parameters", PARAMETERS)
                limit = "max_tokens" if "max_tokens" in kept else "max_completion_tokens"
                spec = spec | {"parameters": {**kept, limit: most}}
                departs += (f"answers of at most {most:,} tokens",)
            yield Choice(row, name, spec, departs)

    @property
    def judge_spec(self) -> dict[str, Any]:
        if self.judge:
            return {"kind": self.judge, "parameters": PARAMETERS}
        return dict(self.experiment.judge)

    @cached_property
    def dataset(self) -> datasets.Dataset:
        """The questions asked, and the documents; `DataError` if they do not fit into memory."""
        chosen, folder = self.experiment, self.data or None
        if self.profile == "paper":
            need = [Store(folder).find(file) for file in datasets.files(chosen.paper)]
            check_memory(
                sum(f.path.stat().st_size * EXPANDED.get(f.path.suffix, 4) for f in need if f),
                f"the files of {chosen.paper}",
            )
        found = datasets.load(chosen.paper, profile=self.profile, data=folder)
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
        found = replace(found, frames=frames).part(questions=self.limit)
        every = len(found.questions)
        if self.mode == "dry" and every > LARGE:
            self.scale = every / SAMPLED
            self.notes.append(f"counted on {SAMPLED:,} of {every:,} questions")
            found = found.part(questions=SAMPLED)
        return found

    @property
    def questions(self) -> pd.DataFrame:
        return self.dataset.questions

    @cached_property
    def documents(self) -> pd.DataFrame:
        return self.dataset.frames.get("documents", _empty("documents"))

    def lacks(self) -> list[str]:
        """Return what is missing: data, weights and keys, each with what to do."""
        said = []
        try:
            _ = self.dataset
            if self.experiment.retrievers and self.documents.empty:
                said.append(f"the documents of {self.experiment.paper} are not here")
        except (MissingData, DataError) as error:
            said.append(_told(error))
        named = {name for one in self.retrievers for name in one.chosen.models}
        for name in sorted(one for one in named if not one.startswith("openai:")):
            try:
                models.registry.need(models.registry.card(name))
            except ModelError as error:
                said.append(_told(error))
        specs = [*(one.chosen for one in self.readers), self.judge_spec]
        specs += [{"kind": name} for name in sorted(named)]
        for spec in specs:
            if spec["kind"].startswith("openai:") and not self.replay:
                options = {"environment": spec.get("environment", "OPENAI")}
                try:
                    key = Client(spec["kind"], ledger=None, **options).endpoint.lacks
                except ModelError as error:
                    key = _told(error)
                said += [f"no key: {key}"] if key else []
        return list(dict.fromkeys(said))

    def client(self, spec: Mapping[str, Any], parameters: Mapping | None = None) -> Client:
        """Return the client of a declaration, with what is left of the budget."""
        name, asks = repr(sorted(spec.items(), key=str)), self.mode == "run"
        if name not in self.clients:
            ledger = ledger_path(self.ledger)
            options = {"timeout": self.timeout, "concurrency": self.concurrency}
            options |= {"replay": self.replay, "budget": self.budget if asks else None}
            options["parameters"] = spec.get("parameters", parameters)
            options["environment"] = spec.get("environment", "OPENAI")
            if not asks:
                guesses = self.questions["answer"].tolist()
                options["guesses"] = guesses if self.mode == "dry" else None
                ledger = ledger if ledger.exists() or self.mode == "batch" else None
            kind = Client if asks else Rehearsal
            self.clients[name] = kind(spec["kind"], ledger=ledger, **options)
        client = self.clients[name]
        if self.budget is not None and asks:
            client.budget = self.budget - self.spent + client.spent
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
        if client.open and self.mode == "run":
            first, hint = client.open[0], "what was answered is kept: the same command goes on"
            if first.kind == "budget":
                hint += " with a larger --budget"
            said = f"{len(client.open):,} requests to {client.model} have no answer"
            raise ModelError(f"{said}; the first: {first.kind}: {first.reason}", hint)

    def close(self) -> None:
        """Close the ledgers."""
        for client in self.clients.values():
            client.close()

    def lists(self, one: Choice | None) -> pd.DataFrame | None:
        """Return the ranked lists of a retriever, None if it cannot be part of a batch.

        A dry run draws documents where ranking takes long or costs.
        """
        if one is None:
            return _empty("runs")
        bare = replace(one.chosen, reader=None)
        if bare.paid:
            agent = bare.retriever["kind"] == "agent"
            return self._searched(one) if agent else self._embedded(one, bare)
        given = [bare], self.documents, self.questions
        if self.mode == "dry":
            small = bare.retriever["kind"] == "bm25" and len(self.documents) <= QUICK
            kept = small or not sweep.plan(*given, k=self.experiment.top)["to_rank"].any()
            if not (self.ranks and kept):
                return self._drawn(one)
        found = sweep.run(*given, k=self.experiment.top)
        if len(found.failures):
            raise ModelError(f"{one.name} failed: {found.failures['reason'].iloc[0]}")
        return found.runs.assign(system=one.name)

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
        if self.mode == "dry":
            texts = [*map("\n\n".join, rows), *self.questions["text"]]
            self.to_encode.append((encoder, texts))
            if encoder.estimate(texts)[0]:
                return self._drawn(one)
        encoder.budget = None if self.budget is None else self.budget - self.spent
        self.encoders.append(encoder)
        return retriever.fit(self.documents).search(self.questions, top).assign(system=one.name)

    def _searched(self, one: Choice) -> pd.DataFrame | None:
        """Search with an agent that a model drives."""
        spec, top, mode = dict(one.chosen.retriever), self.experiment.top, self.mode
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
        if missing := self.lacks() if self.mode == "run" else []:
            first = f"{self.experiment.name} cannot run: {missing[0]}"
            raise MissingData(first, "; ".join(missing[1:]) or None)
        written = []
        for ran in self._answered():
            if ran.answers["failure"].astype(str).str.startswith("pending").any():
                continue  # judged once the batch has answered
            if self.mode == "run" and ran.answers["answer"].isna().all():
                why = ran.answers["failure"].iloc[0]
                self.notes.append(f"{ran.name} answered no question: {why}")
                continue
            with record() as judged:
                self._judge_answers(ran)
            if self.mode == "run":
                row = ran.record(self.experiment, self.dataset)
                row["notes"] += [self.note] if self.note else []
                row |= {"commit": notebook.commit(), "calls": [*ran.calls, *judged]}
                path = experiments.save(self.profile, row, ran.answers, ran.scores)
                written.append(path)
                say(f"{ran.name}: {path}")
        return written

    def _answered(self) -> Iterator[Ran]:
        """Yield each system with its answers."""
        for retriever in self.retrievers or [None]:
            with record() as searched:
                runs = self.lists(retriever)
            lost = self.lost.get(retriever.name, {}) if retriever else {}
            asked = self.questions[~self.questions["question_id"].isin(lost)]
            for reader in self.readers if runs is not None else ():
                name = f"{retriever.name}+{reader.name}" if retriever else reader.name
                spec = reader.chosen
                made = {"prompt": spec["prompt"]} if "prompt" in spec else {}
                if spec["kind"].startswith("openai:"):
                    made["client"] = self.client(spec, PARAMETERS)
                reader.model = readers.reader(spec["kind"], **made)
                options = {"top": self.experiment.top, "system": name}
                with record() as read:
                    found = reader.model.answer(asked, self.documents, runs, **options)
                if lost:  # missing, not answered from no document
                    rows = {"question_id": [*lost], "failure": [*lost.values()], "answer": None}
                    rows |= {"doc_ids": [()] * len(lost), "abstained": False, "system": name}
                    found = pd.concat([found, pd.DataFrame(rows)], ignore_index=True)
                if "client" in made:
                    self._settled(made["client"])
                yield Ran(name, retriever, reader, found, [*searched, *read])
        for given in self.answers:
            name, _, file = given.partition("=")
            if not file:
                raise UsageError(f"no file in --answers {given!r}", "as in --answers NAME=FILE")
            found = read_answers(file, self.questions, skip_bad=True)[0].assign(system=name)
            yield Ran(name, None, None, found.assign(failure=None), [])

    def _judge(self):
        spec = self.judge_spec
        if not spec["kind"].startswith("openai:"):
            return load_judge(spec["kind"])
        judge, known = (
            load_judge(spec["kind"], client=self.client(spec)),
            printed.known(self.experiment.paper),
        )
        judge.prompts = {
            kind: known[name].prompt(judge.prompt(kind))
            for kind, name in self.experiment.prompts.items()
            if known[name].text() is not None
        }
        return judge

    def _judge_answers(self, ran: Ran) -> None:
        """Give a system its judge, scores and corpus metrics."""
        wanted, asked, ran.judge = self.experiment.metrics, self.questions, self._judge()
        present = ran.answers.dropna(subset="answer")
        parts = [pd.DataFrame(columns=["item_id", "metric", "score"])]
        if self.mode == "run":  # nothing is asked for these
            plain = [m for m in wanted if m in metrics.METRICS and not self.experiment.kinds(m)]
            if plain:
                parts.append(metrics.score_answers(ran.answers, asked, metrics=plain))
            for metric in CORPUS.keys() & set(wanted):
                table = metrics.summarise_answers(present, asked, metrics=[CORPUS[metric]])
                table = table.assign(metric=metric, type=OVERALL, of=len(asked))
                kept = ["metric", "type", "of", "value", "low", "high", "n"]
                ran.extra += table[kept].to_dict("records")
        if len(present):
            parts += self._verdicts(ran, present)
        if hasattr(ran.judge, "client"):
            self._settled(ran.judge.client)
        scores = pd.concat([part[[*parts[0]]] for part in parts if len(part)] or parts)
        ran.scores = scores[scores["metric"].isin(wanted)].reset_index(drop=True)

    def _verdicts(self, ran: Ran, present: pd.DataFrame) -> list[pd.DataFrame]:
        asked, chosen, judge = self.questions, self.experiment, ran.judge
        wanted = chosen.metrics
        if chosen.paper == "liverag":
            found = claims.correctness(present, asked, judge)
            long = found.melt(["question_id"], list(wanted), "metric", "score")
            return [long.rename(columns={"question_id": "item_id"})]
        if chosen.paper == "wixqa":
            options, parts = {"repeat": chosen.repeat}, []
            if "factuality" in wanted:
                parts.append(ratings.factuality(present, asked, judge, **options))
            if "context_recall" in wanted:
                options["cutoff"] = chosen.top
                given = ran.answers, asked, self.documents, judge
                parts.append(ratings.context_recall(*given, **options))
            names = {"question_id": "item_id", "value": "score"}
            return [part.rename(columns=names) for part in parts]
        # A question whose answer failed is missing, not wrong.
        asked = asked[asked["question_id"].isin(present["question_id"])]
        texts = panel = None
        if chosen.panel and "invalid_extra_documents" in wanted:
            needed = set(present["doc_ids"].explode()) | set(asked["gold_doc_ids"].explode())
            texts = document_texts(self.documents[self.documents["doc_id"].isin(needed)])
            panel = [judge] * chosen.panel
        options = Options(texts, panel, correct_gold=False, repeat=chosen.repeat)
        found = evaluate(asked, present, judge, options)
        ran.spread = found.data["summary"] if chosen.repeat > 1 else []
        return [found.scores]

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


def _empty(kind: str) -> pd.DataFrame:
    return pd.DataFrame(columns=list(schema.COLUMNS[kind]), dtype=object)


def _told(error: RagkitError) -> str:
    return f"{error.message} ({error.hint})" if error.hint else error.message


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
