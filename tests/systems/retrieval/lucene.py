"""Apache Lucene as an oracle, in a Java machine inside this process."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path

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


@cache
def java(name: str):
    """Return a class of Lucene."""
    import jpype

    if not jpype.isJVMStarted():
        jpype.startJVM("-Xmx2g", "-XX:ActiveProcessorCount=1", classpath=[str(p) for p in jars()])
    return jpype.JClass(f"org.apache.lucene.{name}")


def tokens(texts: list[str]) -> list[list[str]]:
    """Return the words of each text as the standard analyzer finds them."""
    analyzer, found = java("analysis.standard.StandardAnalyzer")(), []
    term = java("analysis.tokenattributes.CharTermAttribute")
    for text in texts:
        stream = analyzer.tokenStream("text", text)
        attribute, words = stream.addAttribute(term), []
        stream.reset()
        while stream.incrementToken():
            words.append(str(attribute.toString()))
        stream.end()
        stream.close()
        found.append(words)
    return found


def hits(documents: list[str], queries: list[str], k: int, k1: float = 1.2, b: float = 0.75):
    """Return [[document number, score], ...] of each query."""
    analyzer = java("analysis.standard.StandardAnalyzer")()
    similarity = java("search.similarities.BM25Similarity")(k1, b)
    folder, config = java("store.ByteBuffersDirectory")(), java("index.IndexWriterConfig")(analyzer)
    config.setSimilarity(similarity)
    config.setRAMBufferSizeMB(256.0)
    config.setMergePolicy(java("index.LogDocMergePolicy")())
    writer, no = java("index.IndexWriter")(folder, config), java("document.Field").Store.NO
    for text in documents:
        entry = java("document.Document")()
        entry.add(java("document.TextField")("text", text, no))
        writer.addDocument(entry)
    writer.forceMerge(1)
    writer.close()
    searcher = java("search.IndexSearcher")(java("index.DirectoryReader").open(folder))
    searcher.setSimilarity(similarity)
    java("search.BooleanQuery").setMaxClauseCount(1_000_000)
    builder, found = java("util.QueryBuilder")(analyzer), []
    for text in queries:
        query = builder.createBooleanQuery("text", text)
        best = [] if query is None else searcher.search(query, k).scoreDocs
        found.append([[int(hit.doc), float(hit.score)] for hit in best])
    return found
