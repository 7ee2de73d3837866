"""The pictures of the pages are those that their texts describe, and a page shows each of them."""

from __future__ import annotations

import re
import runpy
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "pictures.py"))
PICTURES = ROOT / "docs" / "pictures"
HEAD = "title A\nabout A picture.\nsize 200 100\n"


@pytest.mark.parametrize("source", sorted(PICTURES.glob("*.txt")), ids=lambda source: source.stem)
def test_a_picture_is_drawn_from_its_text(source: Path) -> None:
    committed = source.with_suffix(".svg").read_text()
    assert TOOL["drawn"](source.read_text()) == committed, "run tools/pictures.py"


def test_each_picture_has_a_text_and_a_page_that_shows_it() -> None:
    drawn = {path.with_suffix(".svg") for path in PICTURES.glob("*.txt")}
    assert {*PICTURES.glob("*.svg")} == drawn
    assert len(drawn) >= 7
    shown = set()
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        shown |= {(page.parent / name).resolve() for name in re.findall(r"!\[[^\]]+\]\(([^)\s]+)\)", page.read_text())}
    assert drawn - shown == set()


@pytest.mark.parametrize("picture", sorted(PICTURES.glob("*.svg")), ids=lambda picture: picture.stem)
def test_a_picture_is_whole_by_itself_and_has_words_for_readers_who_do_not_see_it(picture: Path) -> None:
    text = picture.read_text()
    root = ET.fromstring(text)
    name = "{http://www.w3.org/2000/svg}"
    assert root.findtext(f"{name}title")
    assert len(root.findtext(f"{name}desc") or "") > 40
    assert not re.search(r"href|url\((?!#)|<script|@import", text)


@pytest.mark.parametrize(
    "line",
    [
        "box node 10 10 60 30 | wider than its box",
        "box node 10 10 180 30 | one | two",
        "box node 150 10 60 30 | out",
        "box nothing 10 10 60 30 | kind",
        "text 190 20 small | beyond the edge",
        "lane a node 100\nsend a b | to no lane",
        "curve 1 2",
    ],
)
def test_a_line_that_cannot_be_drawn_is_named(line: str) -> None:
    with pytest.raises(ValueError, match=r"line \d"):
        TOOL["drawn"](HEAD + line + "\n")


def test_a_picture_without_words_for_readers_who_do_not_see_it_is_refused() -> None:
    with pytest.raises(ValueError, match="about"):
        TOOL["drawn"]("title A\nsize 200 100\n")


def test_the_plot_of_failover_has_the_figures_of_the_page_of_performance() -> None:
    page = " ".join((ROOT / "docs" / "performance.md").read_text().split())
    said = re.search(r"next acknowledged put, five times: Cortado ([\d, ]+) ms; etcd ([\d, ]+) ms", page)
    assert said
    figures = [[float(each.replace(",", "")) for each in part.split(", ")] for part in said.groups()]
    dots = re.findall(r"^dot (\w+) (\S+) ", (PICTURES / "failover.txt").read_text(), re.MULTILINE)
    plotted = [[(float(x) - 110) * 5 for kind, x in dots if kind == of] for of in ("node", "caller")]
    assert [[round(each) for each in row] for row in plotted] == figures
