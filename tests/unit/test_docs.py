"""The documentation holds together: links lead somewhere, and the README's words on the make targets are true."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Markdown viewers make them."""
    found = HEADING.findall(page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), f"{link} does not exist"
        if anchor and target.suffix == ".md":
            assert anchor in _anchors(target), f"{link}: there is no such heading"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pictures_are_there(page: Path) -> None:
    for name in PICTURE.findall(page.read_text()):
        assert (page.parent / name).is_file(), f"{name} does not exist"


def test_the_readme_is_short_and_shows_code_first() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert lines.index("```python") < 40


def test_every_make_target_is_listed_by_make_help() -> None:
    targets = set(re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)[1].split())  # type: ignore[index]
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert targets == set(re.findall(r"make ([a-z-]+)", shown))


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for page in PAGES:
        for target in re.findall(r"`make ([a-z-]+)", page.read_text()):
            assert target in targets, f"{page.name} names make {target}"


def test_formats_and_decisions_are_numbered_without_gaps() -> None:
    numbers = sorted(int(page.name[:4]) for page in (ROOT / "docs" / "adr").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_units_for_systemd_on_the_page_are_those_that_are_delivered() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    units = sorted((ROOT / "deploy" / "systemd").iterdir())
    assert [unit.name for unit in units] == ["cortado-backup@.service", "cortado.service"]
    for unit in units:
        assert f"```ini\n{unit.read_text()}```" in page


def test_one_put_is_followed_through_fifteen_files_that_do_what_the_page_says() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text()
    rows = re.findall(r"^\| (\d+) \| `([^`]+\.py)` \| .* \| ([^|]+) \|$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 16))
    missing = []
    for _, file, functions in rows:
        source = (ROOT / file).read_text()
        missing += [(file, each) for each in re.findall(r"`(\w+)`", functions) if f"def {each}(" not in source]
    assert missing == []


def test_pages_model_times_as_they_come_from_an_application() -> None:
    """With microseconds, as ``datetime.now()`` has them: a type that keeps milliseconds refuses it."""
    about_types = {"schema-evolution.md"}
    for page in PAGES:
        if page.name not in about_types and page.parent.name != "formats":
            for block in re.findall(r"```(?:json|python|sh)\n(.*?)```", page.read_text(), re.DOTALL):
                assert "timestamp-millis" not in block, page.name
