"""The documentation holds together: links lead somewhere, and the README's words on the make targets are true."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from cortado.store.wire.api_level import API_LEVEL

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
FOR_MACHINES = ROOT / "llms.txt"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
PICTURE = re.compile(r"!\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def _anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as Markdown viewers make them."""
    found = HEADING.findall(page.read_text())
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", [*PAGES, FOR_MACHINES], ids=lambda page: str(page.relative_to(ROOT)))
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


def _linked(page: Path) -> list[Path]:
    """Return the files that a page links to, each as often as it does."""
    names = [link.partition("#")[0] for link in LINK.findall(page.read_text()) if "://" not in link]
    return [(page.parent / name).resolve() for name in names if name]


@pytest.mark.parametrize("index", [ROOT / "docs" / "README.md", FOR_MACHINES], ids=lambda page: page.name)
def test_each_page_is_linked_once_from_the_index_and_from_llms_txt(index: Path) -> None:
    listed_by_their_own = [ROOT / "docs" / folder for folder in ("adr", "api", "cli")]
    pages = [page for page in (ROOT / "docs").rglob("*.md") if page.parent not in listed_by_their_own]
    pages = [page for page in pages if page != ROOT / "docs" / "README.md"]
    for folder in listed_by_their_own:
        pages.append(folder / "README.md")
        assert {*folder.glob("*.md")} - {*_linked(folder / "README.md"), folder / "README.md"} == set()
    linked = [page for page in _linked(index) if (ROOT / "docs") in page.parents]
    assert sorted(linked) == sorted(pages)


def test_llms_txt_has_one_line_for_a_page() -> None:
    lines = FOR_MACHINES.read_text().splitlines()
    linking = [line for line in lines if LINK.search(line)]
    assert [line for line in linking if not re.fullmatch(r"- \[[^\]]+\]\([^)]+\): \S.*", line)] == []
    assert {*_linked(FOR_MACHINES)} >= {*ROOT.glob("*.md")}


def test_the_readme_leads_to_the_index() -> None:
    assert ROOT / "docs" / "README.md" in _linked(ROOT / "README.md")


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


def test_the_page_of_compatibility_names_the_bounds_that_are_declared() -> None:
    page = (ROOT / "docs" / "compatibility.md").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    declared = {each for group in project["optional-dependencies"].values() for each in group}
    named = set(re.findall(r"`([\w-]+[>=]=[^`]+)`", page))
    assert len(named) >= 8
    assert named - {*project["dependencies"], *declared} == set()
    pythons = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r":: 3\.\d+$", each)]
    assert page.count(", ".join(pythons)) == 2
    assert f"The version is {project['version']}," in page


def test_the_tests_that_attack_a_promise_are_there() -> None:
    page = (ROOT / "docs" / "how-it-is-tested.md").read_text()
    named = set(re.findall(r"`([a-z]+/[\w/]*(?:\.py)?)`", page)) - {"tests/"}
    assert len(named) > 50
    assert [name for name in named if not (ROOT / "tests" / name).exists()] == []


def test_pages_name_the_level_of_the_api() -> None:
    for page in PAGES:
        if page.parent.name != "adr":
            text = page.read_text()
            levels = [*re.findall(r"\bapi/(\d+)\b", text), *re.findall(r"The level is (\d+) now", text)]
            assert set(levels) <= {str(API_LEVEL)}, page.name


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


def test_each_program_of_the_cookbook_is_short_and_says_its_limits() -> None:
    sections = (ROOT / "docs" / "cookbook.md").read_text().split("\n## ")[1:]
    assert len(sections) >= 6
    for section in sections:
        assert section.count("**After a crash**") == section.count("**Not guaranteed:**") == 1, section[:30]
        for program in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            assert program.count("\n") <= 40, section[:30]
