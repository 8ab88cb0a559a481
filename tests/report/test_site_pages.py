"""The built site in a browser: links, requests, errors, accessibility, two widths, filters, search.

Looks at a small site that it builds, and at those of `build/` that `make report` left. Screenshots
go to `build/screenshots`.
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from bs4 import BeautifulSoup

from ragkit import paths
from ragkit.cli import declare
from ragkit.report import site
from tests.report.test_site import plan, write_executed  # noqa: F401

pytestmark = pytest.mark.slow
REFERENCE = ("reference/commands.html", "reference/ragkit.irt.html")  # all look like these
WIDTHS = (390, 1400)
MOST_BYTES = 30_000_000
SHOWN = ("index.html", "scoreboard.html", "gallery.html", "architecture.html", "notebooks")


@pytest.fixture
def sites(plan):  # noqa: F811
    """The folders of a small site, and of those that were built here before."""
    small = site.build(plan, declare.helps()).parent
    return [small, *sorted(path.parent for path in paths.BUILD.glob("*/site/index.html"))]


def pages(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.html"))


def test_the_reference_shows_what_a_subpackage_exports(sites):
    page = (sites[0] / "reference" / "ragkit.irt.html").read_text("utf-8")
    for name in ("fit", "IRTResult", "IRTResult.score"):
        assert f'id="ragkit.irt.{name}"' in page
    assert 'id="ragkit.irt.engine' not in page


def test_the_sites(sites, browser):
    for folder in sites:
        check_size_and_links(folder)
        check_pages(folder, browser)
        check_scoreboard(folder, browser)
        check_search(folder, browser)


def check_size_and_links(folder: Path) -> None:
    assert sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) <= MOST_BYTES
    parsed = {path: BeautifulSoup(path.read_bytes(), "lxml") for path in pages(folder)}
    anchors = {
        page: {tag["id"] for tag in parsed[page].find_all(id=True)} | {""} for page in parsed
    }
    dead = []
    assert not [path.name for path in parsed if b"<script>alert(1)" in path.read_bytes()]
    for path, soup in parsed.items():
        for tag in soup.find_all(["a", "img", "script", "link"]):
            address = urlsplit(tag.get("href") or tag.get("src") or "")
            if address.scheme or address.netloc:
                continue
            target = (path.parent / unquote(address.path)).resolve() if address.path else path
            alive = target.exists() and address.fragment in anchors.get(target, {address.fragment})
            if not alive and tag.name == "a":
                dead.append((path.name, tag.get("href")))
        for image in soup.select("article img"):
            assert image.get("alt"), f"{path.name}: {image}"
    assert dead == []


def check_pages(folder: Path, browser) -> None:
    from axe_playwright_python.sync_playwright import Axe

    options = {"preload": False, "resultTypes": ["violations"]}
    kept = paths.BUILD / "screenshots" / folder.parent.name
    problems = []
    for width in WIDTHS:
        page = browser.new_page(viewport={"width": width, "height": 844})
        watch(page, problems)
        for path in pages(folder):
            name = path.relative_to(folder).as_posix()
            if width == WIDTHS[0] and name.startswith("reference/") and name not in REFERENCE:
                continue
            page.goto(path.as_uri())
            page.wait_for_timeout(50)
            wide = page.evaluate("document.documentElement.scrollWidth")
            problems += [(width, name, "wider than the window")] if wide > width else []
            if name.startswith("reference/") and name not in REFERENCE:
                continue  # looked at for requests and errors alone
            for found in Axe().run(page, options=options).response["violations"]:
                if found["impact"] in ("serious", "critical"):
                    problems.append((width, name, found["id"], found["nodes"][0]["html"][:200]))
            if name.startswith(SHOWN):
                place = kept / f"{width}-{name.replace('/', '-')}.png"
                page.screenshot(path=place, full_page=True)
        page.close()
    assert problems == []


def watch(page, problems: list) -> None:
    """Record requests that leave the machine, and errors of the console."""

    def asked(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            problems.append(("request", request.url))

    page.on("request", asked)
    page.on("console", lambda m: m.type == "error" and problems.append(("console", m.text)))
    page.on("pageerror", lambda error: problems.append(("error", str(error))))


def check_scoreboard(folder: Path, browser) -> None:
    """Filters leave fewer rows; two clicks lead from a number to the cell that measured it."""
    page = browser.new_page()
    page.goto((folder / "scoreboard.html").as_uri())
    told = page.locator(".dt-info")
    told.wait_for()
    everything = int(re.search(r"of ([\d,]+)", told.inner_text())[1].replace(",", ""))
    page.get_by_placeholder("paper", exact=True).press_sequentially("LiveRAG")
    page.wait_for_function("document.querySelector('.dt-info').innerText.includes('filtered')")
    some = int(re.search(r"of ([\d,]+)", told.inner_text())[1].replace(",", ""))
    assert 0 < some < everything
    page.get_by_placeholder("measured in").press_sequentially("-")
    page.locator("#board tbody a").first.click()
    page.wait_for_url("**/notebooks/*.html#cell-*")
    assert page.locator(f"[id='{page.url.split('#')[1]}']").count() == 1
    page.get_by_role("link", name="Where the numbers come from").last.click()
    assert "Notebook" in page.locator("#where-the-numbers-come-from").inner_text()
    page.close()


def check_search(folder: Path, browser) -> None:
    page = browser.new_page()
    page.goto((folder / "search.html").as_uri() + "?q=scoreboard")
    page.locator("#search-results li").first.wait_for()
    page.goto((folder / "notebooks.html").as_uri())
    page.locator("article a.reference.internal").first.click()
    code = page.locator("div.cell_input").first
    assert not code.is_visible()
    page.get_by_role("button", name="Show the code").click()
    assert code.is_visible()
    for path in (folder / "notebooks").glob("*.html"):
        if b'class="math' in path.read_bytes():  # a formula is set, not shown as it was typed
            page.goto(path.as_uri())
            page.locator("mjx-container svg").first.wait_for(state="attached")
    page.close()
