"""Small data folders in the official layouts, in words of our own, and a registry of them."""

from __future__ import annotations

import copy
import csv
import gzip
import io
import json
import zipfile
from pathlib import Path

from ragkit import datasets
from ragkit.datasets import fetch, registry
from ragkit.datasets.registry import Entry
from ragkit.files import sha256
from ragkit.paths import REGISTRY


def table(header, *rows):
    return [dict(zip(header.split(), map(str, row), strict=True)) for row in rows]


def document(name):
    return {
        "doc_id": f"<urn:uuid:{name}>",
        "content": f"All about {name}\n\nThe {name} stands in the old harbour.\n",
    }


def live(index, session, *documents, **config):
    return {
        "Index": index,
        "Question": f"Where does number {index} stand?",
        "Answer": "In the old harbour.",
        "Supporting_Documents": [document(name) for name in documents],
        "Answer_Claims": {"direct": ["It stands there."], "useful": ["It is old."], "useless": []},
        "Session": session,
        "DataMorgana_Config": {
            "answer-type-categorization": config.get("answer", "factoid"),
            "answer-control-categorization": "unspecified",
            "premise-categorization": "without premise",
            "formulation-categorization": "concise and natural",
            "linguistic-variation-categorization": "similar to document",
            "politeness-categorization": "neutral",
            "linguistic-correctness-categorization": "mild mistakes",
            "expertise-categorization": config.get("user", "novice"),
            "multi-doc-categorization": config.get("aspect"),
        },
        "ACS [-2 : 1]": 0.5 + index,
        "ACS_Std": 0.25,
        "IRT-diff [-6 : 6]": -1.5,
        "IRT-disc [-0.6 : 1.4]": 0.75,
    }


def erb(number, gold, **more):
    return {
        "question_id": f"qst_{number:04d}",
        "question_type": "basic",
        "source_types": ["slack"],
        "question": f"Who carries crate {number}?",
        "expected_doc_ids": gold,
        "gold_answer": "The night shift.",
        "answer_facts": ["It is the night shift."],
        **more,
    }


def wix(number, gold):
    return {"question": f"How do I moor {number}?", "answer": "With a rope.", "article_ids": gold}


CASE = {"route": "x", "latency_s": 0.1, "precision_at_1": 1.0}
ARTICLES = [
    {
        "id": name,
        "url": f"https://help.example/{name}",
        "contents": f"To {name}, take a rope.",
        "article_type": kind,
        "title": name.title(),
    }
    for name, kind in (("moor", "article"), ("sail", "article"), ("fly", "feature_request"))
]
RUNS = {
    system: [
        {
            "query_id": f"q{n}",
            "question": f"How do I moor {n}?",
            "gt_ids_short": ["moor"],
            "recall_at_1": 0.0,
            "recall_at_3": 0.5,
            "recall_at_10": recall,
            **CASE,
        }
        for n in (1, 2)
    ]
    for system, recall in (("bm25_only", 0.5), ("dense_only", 1.0))
}
DOCUMENTS = {
    "./slack/harbour/dsid_1__morning.txt": "Morning talk\n\nCrate one is wet.\n",
    "./slack/harbour/dsid_2__evening.txt": "Evening talk\n\nCrate two is dry.\n",
    "./jira/dsid_3__leak.txt": "A leak\n\nFix it.\n",
}
FACTORS = "retriever depth qid relevance_score faithfulness_score"
JUDGED = (
    "repo file question_id question_type answer_correct completeness_pct invalid_extra_docs".split()
)
BINARY = table("Item1 Item2 Item3", (1, 0, 1), (0, 0, 1), (1, 1, 1))

# name -> path -> what it holds: rows, a JSON value, or the members of a zip file.
OFFICIAL = {
    "wixqa": {
        "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl": ARTICLES,
        "wixqa/wixqa_expertwritten/test.jsonl": [wix(1, ["moor"]), wix(2, ["moor", "sail"])],
        "wixqa/wixqa_simulated/test.jsonl": [wix(3, ["sail"]), wix(4, ["fly"])],
        "wixqa/wixqa_synthetic/test.jsonl": [wix(5, ["fly"]), wix(6, []), wix(7, ["moor"])],
    },
    "wixqa_retrieval": {"wixqa/expertwritten_retrieval_scores_pulseagent.json": RUNS},
    "enterpriserag_bench": {
        "enterpriserag_bench/questions.jsonl": [erb(1, ["dsid_1"]), erb(2, ["dsid_2", "dsid_3"])],
        "enterpriserag_bench/extra_questions.jsonl": [erb(8, ["dsid_3"]), erb(9, [])],
        "enterpriserag_bench/all_documents.zip": DOCUMENTS,
    },
    "erb_judged": {
        "enterpriserag_bench/per_question_judge_scores.csv.gz": [
            dict(zip(JUDGED, row, strict=True))
            for row in (
                ("someone", "v1/eval.json", "qst_0001", "basic", "1", "75", "0"),
                ("someone", "v1/eval.json", "qst_0002", "basic", "0", "0", ""),
                ("someone", "results6.2-model/eval.json", "qst_0001", "basic", "1", "100", "2"),
            )
        ]
    },
    "liverag": {
        "liverag/LiveRAG_banchmark_20250910.parquet": [
            live(0, "First", "crane"),
            live(1, "Both", "crane", "buoy", answer="comparison", user="expert"),
            live(2, "Second", "mole", answer="yes/no", aspect="two sides"),
        ]
    },
    "grag": {
        "liverag/grag_factor_analysis_query_level_scores.csv": table(
            FACTORS, ("bm25", 5, "q1", 2, 1), ("bm25", 9, "q1", -1, 0), ("bm25", 5, "q2", 1, -1)
        )
    },
    "triviaqa": {
        "comparison_questions/triviaqa_test_subsample_searchr1.jsonl": [
            {"id": "1", "question": "What floats?", "golden_answers": ["a buoy", "buoys"]},
            {"id": "2", "question": '"Who said ""ahoy""?"', "golden_answers": ["Bell"]},
        ]
    },
    "popqa": {
        "comparison_questions/popqa_model_collaboration_2000.json": {
            "name": "popqa",
            "dev": [{"input": "Who built the mole?", "output": '["Ann", "A. Moor"]'}],
            "test": [{"input": "Who built the pier?", "output": '["Bo"]'}],
        }
    },
    "webquestions": {
        f"comparison_questions/webquestions_brmson_{part}.json": [
            {"qId": f"wq{part}", "qText": f"what is {part}", "answers": ["it", "that"]}
        ]
        for part in ("trainmodel", "val", "devtest", "test")
    },
    "simpleqa": {
        "comparison_questions/simple_qa_test_set.csv": table(
            "metadata problem answer", ("{}", "Which pier, the old?", "North"), ("{}", "Why?", "So")
        )
    },
    "natural_questions": {
        "comparison_questions/nq_open_dev.jsonl": [
            {"question": "who rows the boat", "answer": ["Ann"]},
            {"question": "when does it sail", "answer": ["at dawn", "early"]},
        ]
    },
    "lsat": {"irt/ltm_LSAT.csv": BINARY},
    "lsat6": {"irt/mirt_LSAT6_freq.csv": table("Item_1 Item_2 Freq", (0, 1, 2), (1, 1, 3))},
    "lsat7": {"irt/mirt_LSAT7_freq.csv": table("Item.1 Item.2 freq", (0, 1, 0), (1, 1, 4))},
    "sat12": {
        "irt/mirt_SAT12_raw.csv": table(
            " ".join(f"Item.{n}" for n in range(1, 33)),
            [1] * 32,
            [8] + [4] * 31,
        )
    },
    "science": {"irt/mirt_Science.csv": table("Comfort Work", (1, 4), (3, 2))},
    "wirs": {"irt/ltm_WIRS.csv": BINARY},
    "abortion": {"irt/ltm_Abortion.csv": BINARY},
    "mobility": {"irt/ltm_Mobility.csv": BINARY},
    "czech_simpleqa": {
        "irt/czech_simpleqa_grades_5models.csv.gz": table(
            "model simpleqa_row grade", ("m1", 0, "A"), ("m1", 1, "B"), ("m2", 0, "C")
        )
    },
    "erb_answers": {
        "enterpriserag_bench/system_answers_jsonl.zip": {
            "someone/one.jsonl": '{"question_id": "qst_0001", "answer": "Dry.", "latency": 1}\n',
            "someone/two.jsonl": '{"question_id": "qst_0001", "document_ids": ["dsid_1"]}\n',
        }
    },
    "erb_retrieval": {
        "enterpriserag_bench/per_question_retrieval_scores_victormocioiu.csv.gz": table(
            "file question_id document_recall first_gold_rank",
            ("one.json", "qst_0001", 0.5, 3),
            ("one.json", "qst_0002", 0.0, ""),
            ("one.json", "qst_0003", "", ""),
        )
    },
    "liverag_answers": {
        "liverag/session1_answers_smart_rag.jsonl.gz": [{"id": 0, "answer": "Deep."}],
        "liverag/session1_n50_commercial_answers_rmit.jsonl.gz": [
            {"query_id": "0", "generated_response": "Very deep.", "citations": []}
        ],
    },
    "wixqa_answers": {
        "wixqa/mse_eval_runs_question_answer_scores.jsonl.gz": [
            {
                "run": run,
                "question": "How?",
                "candidate_answer": "So.",
                "gt_answer": "Thus.",
                **more,
            }
            for run, more in (("one", {"token_f1": 0.5}), ("two", {}))
        ]
    },
    "datamorgana": {
        "liverag/datamorgana_qa_multi_n50.tsv": [
            {
                "qid": "1",
                "question": "Where?",
                "answer": "There.",
                "context": "['One text.', 'Another text.']",
                "document_ids": "['a', 'b']",
                "question_factuality": "factoid",
                "question_premise": "direct",
                "question_phrasing": "concise",
                "question_linguistic_variation": "distant",
                "question_multi-doc": "comparison",
                "user_expertise-categorization": "novice",
                "question_length": "1",
            }
        ]
    },
}

# What a loader cannot do without, beside what the layout needs to be read at all.
COLUMNS = {
    "wixqa/wix_kb_corpus/wix_kb_corpus.jsonl": ("id", "url", "contents", "article_type", "title"),
    **{
        f"wixqa/wixqa_{kind}/test.jsonl": ("question", "answer", "article_ids")
        for kind in ("expertwritten", "simulated", "synthetic")
    },
    "enterpriserag_bench/questions.jsonl": tuple(erb(1, [])),
    "enterpriserag_bench/extra_questions.jsonl": tuple(erb(1, [])),
    "enterpriserag_bench/per_question_judge_scores.csv.gz": tuple(JUDGED),
    "liverag/LiveRAG_banchmark_20250910.parquet": tuple(
        column for column in live(0, "Both") if column != "DataMorgana_Config"
    ),
    "liverag/grag_factor_analysis_query_level_scores.csv": (
        "qid",
        "relevance_score",
        "faithfulness_score",
    ),
    "comparison_questions/triviaqa_test_subsample_searchr1.jsonl": ("question", "golden_answers"),
    "comparison_questions/simple_qa_test_set.csv": ("problem", "answer"),
    "comparison_questions/nq_open_dev.jsonl": ("question", "answer"),
    "comparison_questions/webquestions_brmson_val.json": ("qText", "answers"),
    "irt/czech_simpleqa_grades_5models.csv.gz": ("model", "simpleqa_row", "grade"),
    "wixqa/mse_eval_runs_question_answer_scores.jsonl.gz": ("run", "question", "gt_answer"),
    "liverag/session1_answers_smart_rag.jsonl.gz": ("id", "answer"),
    "liverag/datamorgana_qa_multi_n50.tsv": ("qid", "context", "document_ids"),
}
OWNER = {path: name for name, some in OFFICIAL.items() for path in some}


def contents(name):
    """A copy of what a dataset's files hold, to be spoiled."""
    return copy.deepcopy(OFFICIAL[name])


def count(path, value):
    """How many rows the registry has to expect."""
    if path == "wixqa/expertwritten_retrieval_scores_pulseagent.json":
        return sum(map(len, value.values()))
    if path == "comparison_questions/popqa_model_collaboration_2000.json":
        return len(value["dev"]) + len(value["test"])
    if path == "enterpriserag_bench/system_answers_jsonl.zip":
        return sum(text.count("\n") for text in value.values())
    return len(value)


def encode(path, value) -> bytes:
    """The bytes of a file of that name."""
    if isinstance(value, bytes):
        return value
    if path.endswith(".gz"):
        return gzip.compress(encode(path.removesuffix(".gz"), value), mtime=0)
    if path.endswith(".jsonl"):
        return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in value).encode()
    if path.endswith(".json"):
        return json.dumps(value, indent=1, ensure_ascii=False).encode()
    if path.endswith((".csv", ".tsv")):
        stream = io.StringIO(newline="")
        delimiter = "\t" if path.endswith(".tsv") else ","
        writer = csv.DictWriter(stream, list(value[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(value)
        return stream.getvalue().encode()
    stream = io.BytesIO()
    if path.endswith(".zip"):
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for member, text in value.items():
                archive.writestr(member, text)
        return stream.getvalue()
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.Table.from_pylist(value), stream)
    return stream.getvalue()


def write(folder: Path, files: dict) -> Path:
    """Write a data folder; a file whose content is None is left out."""
    for path, value in files.items():
        if value is not None:
            at = folder / path
            at.parent.mkdir(parents=True, exist_ok=True)
            at.write_bytes(encode(path, value))
    return folder


def register(monkeypatch, *entries: Entry) -> dict[str, Entry]:
    """Put a registry of our own in the place of the real one."""
    own = {entry.path: entry for entry in entries}
    monkeypatch.setattr(registry, "entries", lambda: own)
    monkeypatch.setattr(fetch, "entries", lambda: own)
    return own


def entry(path, value=None, *, pinned=True, **more) -> Entry:
    """A registered file with the digest of its small content; read as the real one is."""
    if value is None:
        value = OFFICIAL[OWNER[path]][path]
    raw = encode(path, value)
    digest = {"sha256": sha256_of(raw), "bytes": len(raw)} if pinned else {}
    rows = None if isinstance(value, bytes) else count(path, value)
    real = registry._registry(REGISTRY)[1].get(path)
    fields = {
        "dataset": OWNER.get(path, "other"),
        "origin": "the test",
        "licence": "CC0",
        "rows": rows,
        "url": f"https://data.example/{path}",
        "read": real.read if real else {},
        "optional": bool(real and real.optional),
        "extra": bool(real and real.extra),
    }
    return Entry(path, **fields | digest | more)


def sha256_of(raw: bytes) -> str:
    import hashlib

    return hashlib.sha256(raw).hexdigest()


def register_all(monkeypatch, *, pinned=False) -> None:
    """Register every small file, by its row count alone or by its digest too."""
    register(monkeypatch, *(entry(path, pinned=pinned) for path in OWNER))


def load(name, folder):
    return datasets.load(name, profile="paper", data=folder)


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
