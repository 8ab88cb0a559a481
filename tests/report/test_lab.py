"""JupyterLab opens on the map of the workspace, without popups and requests that leave."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import nbformat
import pytest

from ragkit import paths
from ragkit.report import pipeline
from ragkit.report.site import PAGES, lab
from tests.report.test_site import write_executed

WORKSPACE = "default-37a8.jupyterlab-workspace"
WINDOW = {"width": 1400, "height": 900}


@pytest.fixture
def page(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("RAGKIT_BUILD", str(tmp_path / "build"))
    write_executed(tmp_path / "build" / "sample", "11-wixqa-retrieval")
    return lab.index()


def test_the_index_names_every_notebook_its_figure_and_its_run(page):
    text = "".join(cell.source for cell in nbformat.read(page, 4).cells)
    for step in pipeline.catalogue():
        assert f"[{step.name}](../notebooks/{step.name}.ipynb)" in text
    assert 'src="sample/figures/11-wixqa-retrieval/recall.png"' in text
    assert "sample: 1.5 min" in text
    assert text.count("not yet") == len(pipeline.catalogue()) - 1
    assert "make report PROFILE=paper" in text


def test_the_layout_has_the_name_that_lab_looks_for(tmp_path):
    from jupyterlab_server.workspaces_handler import WorkspacesManager

    shutil.copy(PAGES / "workspace.json", tmp_path / WORKSPACE)
    found = WorkspacesManager(str(tmp_path)).load("default")
    assert found["data"]["layout-restorer:data"]["left"]["current"] == "@jupyterlab/toc:plugin"
    assert WORKSPACE in (paths.ROOT / "Makefile").read_text("utf-8")


@pytest.fixture
def server(page, tmp_path):
    """JupyterLab as `make lab` starts it, on a free port of this machine."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = tmp_path / "app"
    settings.mkdir()
    shutil.copy(PAGES / "overrides.json", settings)
    homes = {name: str(tmp_path / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")}
    (tmp_path / "notebooks").symlink_to(paths.NOTEBOOKS)
    shutil.copy(PAGES / "workspace.json", settings / WORKSPACE)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", "--allow-root"]
    command += [f"--port={port}", "--port-retries=0", "--IdentityProvider.token="]
    command += ["--notebook-dir=.", "--LabApp.default_url=/lab/tree/build/index.ipynb"]
    command += [f"--LabApp.{kind}={settings}" for kind in ("app_settings_dir", "workspaces_dir")]
    with open(tmp_path / "lab.log", "w") as log:
        given = {"cwd": tmp_path, "env": {**os.environ, **homes}, "stdout": log, "stderr": log}
        process = subprocess.Popen(command, **given)
        try:
            for _ in range(120):
                try:
                    urlopen(f"http://127.0.0.1:{port}/api", timeout=2).close()
                    break
                except OSError:
                    time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(timeout=30)


@pytest.mark.slow
def test_lab_opens_on_the_index(server, browser):
    outside = []
    view = browser.new_page(viewport=WINDOW)
    inside = (server, server.replace("http", "ws"), "data:", "blob:")
    view.on("request", lambda r: r.url.startswith(inside) or outside.append(r.url))
    view.goto(server)
    view.get_by_role("heading", name="The notebooks").wait_for(timeout=90_000)
    view.wait_for_timeout(3000)
    assert view.url.endswith("/lab/tree/build/index.ipynb")
    assert view.locator("dialog[open], .jp-Dialog, .Toastify__toast").count() == 0
    contents = view.locator(".jp-TableOfContents")
    assert contents.is_visible()
    contents.get_by_text("The notebooks", exact=True).wait_for()
    image = view.locator("img[alt^='Across: recall']").first
    assert image.evaluate("image => image.naturalWidth") > 0
    view.screenshot(path=paths.BUILD / "screenshots" / "lab.png")
    assert outside == []


EXPLORER = """import pandas as pd
from ragkit import explore

ids = {"question_id": ["q1", "q2"], "text": ["one?", "two?"], "answer": ["1", "2"]}
rows = [("a", "q1", 0.0), ("b", "q1", 1.0), ("a", "q2", 1.0), ("b", "q2", 0.0)]
scores = pd.DataFrame(rows, columns=["subject_id", "item_id", "score"])
explore.pair(scores, "a", "b", pd.DataFrame(ids))"""


@pytest.mark.slow
def test_an_explorer_answers_a_click(server, browser, tmp_path):
    from playwright.sync_api import expect

    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(EXPLORER, id="pair")])
    book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(book, tmp_path / "pair.ipynb")
    view = browser.new_page(viewport=WINDOW)
    view.goto(f"{server}/lab/tree/pair.ipynb")
    view.locator(".jp-Cell .cm-content").first.click(timeout=90_000)
    view.get_by_text("Python 3 (ipykernel) | Idle").wait_for(timeout=90_000)
    view.keyboard.press("Shift+Enter")
    chosen = view.locator(".jp-OutputArea select")
    chosen.wait_for(timeout=90_000)
    html = ".jp-OutputArea .widget-html-content, .jp-OutputArea .widget-html"
    shown = view.locator(html).first
    expect(shown).to_contain_text("two?")
    chosen.select_option(index=1)
    expect(shown).to_contain_text("one?", timeout=30_000)
    view.screenshot(path=paths.BUILD / "screenshots" / "explorer.png")
