"""Apache Lucene as an oracle: one process with a Java machine, spoken to through two files.

`ask(job)` starts it, `python -m tests.systems.retrieval.lucene IN OUT` is it. A job has some of

    texts       strings to analyse                     -> tokens, a list of strings for each
    documents   strings to index, `queries` to ask, `k`, `k1`, `b`
                                                       -> hits, [[document number, score], ...]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = (Path("/usr/share/java"), Path("/usr/local/share/java"))
NAMES = ("lucene-core", "lucene-analyzers-common")


def jars() -> list[Path]:
    """Return Lucene's jar files, or an empty list."""
    found = [sorted(folder.glob(f"{name}-8*.jar")) for name in NAMES for folder in FOLDERS]
    newest = [paths[-1] for paths in found if paths]
    return newest if len(newest) == len(NAMES) else []


def why_not() -> str | None:
    """Return why Lucene cannot be asked here, or None."""
    if find_spec("jpype") is None:
        return "JPype is not installed: pip install jpype1"
    if not jars():
        return "Lucene 8 is not installed: apt-get install liblucene8-java default-jre-headless"
    return None


def ask(job: dict, timeout: float = 300) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "job.json", Path(folder) / "answer.json"
        asked.write_text(json.dumps(job), "utf-8")
        module = ["-m", "tests.systems.retrieval.lucene"]
        command = [sys.executable, *module, str(asked), str(answered)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout)
        if done.returncode:
            raise RuntimeError(f"Lucene failed:\n{done.stderr[-2000:]}")
        return json.loads(answered.read_text("utf-8"))


def main(asked: str, answered: str) -> None:
    import jpype

    jpype.startJVM("-Xmx2g", "-XX:ActiveProcessorCount=1", classpath=[str(p) for p in jars()])
    job = json.loads(Path(asked).read_text("utf-8"))
    answer = {}
    if "texts" in job:
        answer["tokens"] = _tokens(jpype, job["texts"])
    if "documents" in job:
        answer["hits"] = _hits(jpype, job)
    Path(answered).write_text(json.dumps(answer), "utf-8")


def _tokens(jpype, texts):
    analyzer = jpype.JClass("org.apache.lucene.analysis.standard.StandardAnalyzer")()
    term = jpype.JClass("org.apache.lucene.analysis.tokenattributes.CharTermAttribute")
    tokens = []
    for text in texts:
        stream = analyzer.tokenStream("text", text)
        attribute = stream.addAttribute(term)
        stream.reset()
        found = []
        while stream.incrementToken():
            found.append(str(attribute.toString()))
        stream.end()
        stream.close()
        tokens.append(found)
    return tokens


def _hits(jpype, job):
    java = jpype.JClass
    analyzer = java("org.apache.lucene.analysis.standard.StandardAnalyzer")()
    similarity = java("org.apache.lucene.search.similarities.BM25Similarity")(
        jpype.JFloat(job.get("k1", 1.2)), jpype.JFloat(job.get("b", 0.75))
    )
    folder = java("org.apache.lucene.store.ByteBuffersDirectory")()
    config = java("org.apache.lucene.index.IndexWriterConfig")(analyzer)
    config.setSimilarity(similarity)
    config.setRAMBufferSizeMB(256.0)
    config.setMergePolicy(java("org.apache.lucene.index.LogDocMergePolicy")())
    writer = java("org.apache.lucene.index.IndexWriter")(folder, config)
    document = java("org.apache.lucene.document.Document")
    text_field = java("org.apache.lucene.document.TextField")
    no = java("org.apache.lucene.document.Field").Store.NO
    for text in job["documents"]:
        entry = document()
        entry.add(text_field("text", text, no))
        writer.addDocument(entry)
    writer.forceMerge(1)
    writer.close()
    reader = java("org.apache.lucene.index.DirectoryReader").open(folder)
    searcher = java("org.apache.lucene.search.IndexSearcher")(reader)
    searcher.setSimilarity(similarity)
    builder = java("org.apache.lucene.util.QueryBuilder")(analyzer)
    java("org.apache.lucene.search.BooleanQuery").setMaxClauseCount(1_000_000)
    hits = []
    for text in job["queries"]:
        query = builder.createBooleanQuery("text", text)
        found = [] if query is None else searcher.search(query, job["k"]).scoreDocs
        hits.append([[int(hit.doc), float(hit.score)] for hit in found])
    return hits


if __name__ == "__main__":
    main(*sys.argv[1:])
