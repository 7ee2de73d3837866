"""The site of the pages builds from its lock file, with every link checked, and loads nothing from other hosts."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from support.environments import ROOT, Environment, locked

LOADED = re.compile(r"<(?:script|link|img|iframe|source)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return locked(tmp_path_factory.mktemp("documentation") / "venv", "requirements-docs.lock")


def build(environment: Environment, pages: Path) -> Path:
    """Build the laid-out pages, and return the folder of the site. Raises AssertionError if a link leads nowhere."""
    site = pages.with_name("site")
    settings = ("-f", str(pages / "mkdocs.yml"), "-d", str(site))
    environment.run("mkdocs", "build", "--strict", *settings, NO_MKDOCS_2_WARNING="1")
    return site


@pytest.fixture
def pages(tmp_path: Path) -> Path:
    subprocess.run([sys.executable, str(ROOT / "tools" / "site.py"), str(tmp_path / "pages")], check=True)
    return tmp_path / "pages"


def test_the_site_holds_every_page_and_loads_nothing_from_elsewhere(environment: Environment, pages: Path) -> None:
    site = build(environment, pages)
    for page in (ROOT / "docs").rglob("*.md"):
        name = "index.html" if page.name == "README.md" else f"{page.stem}.html"
        assert (site / page.relative_to(ROOT)).with_name(name).is_file()
    assert (site / "llms.txt").read_text() == (ROOT / "llms.txt").read_text()
    for made in site.rglob("*.html"):
        html = made.read_text()
        assert LOADED.findall(html) == [], made.name
        shown = re.sub(
            r"<(pre|code)\b.*?</\1>", "", html[html.find("<article") : html.find("</article")], flags=re.DOTALL
        )
        assert not re.search(r"^(?:- |\d+\. |```|\|)", shown, re.MULTILINE), f"{made.name}: Markdown that was not read"


@pytest.mark.parametrize("link", ["[a](missing.md)", "[a](client.md#no-such-heading)", "![a](pictures/missing.svg)"])
def test_a_link_that_leads_nowhere_ends_the_build(environment: Environment, pages: Path, link: str) -> None:
    only = pages / "source" / "docs"
    for other in only.iterdir():
        if other.is_dir():
            shutil.rmtree(other)
        elif other.name != "client.md":
            other.unlink()
    (pages / "source" / "README.md").write_text("# A\n")
    (only / "client.md").write_text(f"# B\n\n{link}\n")
    text = (pages / "mkdocs.yml").read_text()
    (pages / "mkdocs.yml").write_text(re.sub(r"^nav: .*$", "", text, flags=re.MULTILINE))
    for other in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"):
        (pages / "source" / other).unlink()
    shutil.rmtree(pages / "source" / "tests")
    with pytest.raises(AssertionError, match=r"missing|no-such-heading"):
        build(environment, pages)
