"""Printed prompts: recognised by digest in text, HTML and PDF, and in nothing else."""

from __future__ import annotations

import textwrap
from html import escape
from pathlib import Path

import pytest

from ragkit.errors import DataError, MissingData, UsageError
from ragkit.judging import load_judge
from ragkit.llm import load_prompt, printed
from ragkit.llm.requests import digest

PAPERS = Path(__file__).resolve().parents[3] / "shared" / "papers"
TEXT = """Rate the candidate, "fairly". Look for step-by-step instructions and
well-known facts: 1. nothing is left out; 2. nothing is invented (0-1)."""


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table with one prompt, which a paper of three pages prints."""
    plain = printed.letters(TEXT)[0]
    row = (
        f'[wixqa.rate]\nplace = "appendix Z"\nletters = {len(plain)}\nsha256 = "{digest(plain)}"\n'
    )
    (tmp_path / "printed.toml").write_text(row + "[enterpriserag_bench]\n")
    monkeypatch.setattr(printed, "FILE", tmp_path / "printed.toml")
    return tmp_path


def pages(text):
    """Return a paper with heads and numbers, whose narrow lines cut words."""
    narrow = textwrap.fill(text, 30, break_on_hyphens=True).replace(
        "instructions", "instruc-\ntions"
    )
    lines = narrow.split("\n")
    head = "\nA study of nothing in particular, PREPRINT\n"
    return f"Before.{head}1\n" + "\n".join(lines[:3]) + f"\n2{head}" + "\n".join(lines[3:]) + head


def test_text_of_narrow_columns_and_several_pages(table):
    (table / "p.txt").write_text(pages(TEXT) + "After it nothing.\n")
    (one,) = printed.import_printed("wixqa", table / "p.txt")
    assert one.text().startswith('Rate the candidate, "fairly".')
    assert one.text().endswith("(0-1).")
    assert "PREPRINT" not in one.text()
    assert "instructions" in one.text()
    assert "step-by-step" in " ".join(one.text().split()).replace("- ", "-")


def test_html(table):
    body = "".join(f"<p>{escape(line)}<b></b></p>" for line in TEXT.split("\n"))
    page = f"<html><script>var a = 1;</script><body><p>Before</p>{body}<p>After</p></body></html>"
    (table / "p.html").write_text(page)
    assert len(printed.import_printed("wixqa", table / "p.html")) == 1


def test_pdf(table):
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    fig = plt.figure(figsize=(6, 4))
    fig.text(0.1, 0.8, "Before it.\n" + textwrap.fill(TEXT, 50), va="top")
    with plt.rc_context({"pdf.fonttype": 42}):
        fig.savefig(table / "p.pdf")
    plt.close(fig)
    assert len(printed.import_printed("wixqa", table / "p.pdf")) == 1
    (table / "p.pdf").write_bytes(b"%PDF-1.4 nothing")
    with pytest.raises(DataError, match="not a PDF"):
        printed.import_printed("wixqa", table / "p.pdf")


def test_another_wording_is_not_the_prompt(table):
    (table / "p.txt").write_text(TEXT.replace("invented", "imagined"))
    with pytest.raises(DataError, match="holds none of the 1 prompts"):
        printed.import_printed("wixqa", table / "p.txt")
    one = printed.known("wixqa")["rate"]
    assert one.text() is None
    with pytest.raises(MissingData, match="was not imported"):
        one.prompt(load_prompt("check"))
    one.path.parent.mkdir(parents=True)
    one.path.write_text(TEXT + " And be kind.")
    with pytest.raises(DataError, match="is not the prompt"):
        one.text()
    with pytest.raises(UsageError, match="no paper"):
        printed.known("other")


def test_a_judge_uses_it_and_says_so(table):
    (table / "p.txt").write_text(TEXT)
    (one,) = printed.import_printed("wixqa", table / "p.txt")
    own = load_judge("openai:toy").prompt("factuality")
    prompt = one.prompt(own)
    assert prompt.placeholders == own.placeholders
    judge = load_judge("openai:toy", prompts={"factuality": prompt})
    told = judge.describe(["factuality", "context_recall"])["prompts"]
    assert told["factuality"]["id"].startswith("wixqa:rate@printed:")
    assert told["context_recall"]["id"].startswith("context_recall@1")


def test_the_command(table, ragkit):
    (table / "p.txt").write_text(TEXT)
    imports = "import", "wixqa", table / "p.txt"
    for words, said in ((["list"], "missing"), (imports, "rate"), (["list"], "imported")):
        code, out, _ = ragkit("prompts", *words)
        assert (code, said in out) == (0, True)


@pytest.mark.parametrize("paper", ["wixqa", "liverag"])
def test_the_papers_themselves(paper):
    if not PAPERS.is_dir():
        pytest.skip("no texts of the papers at ../shared/papers")
    found = printed.import_printed(paper, PAPERS / f"{paper}.txt")
    assert found == list(printed.known(paper).values())
    assert all(len(one.text()) > one.letters for one in found)
