"""The pages as ``make docs`` lays them out for mkdocs. ``tests/packaging/test_documentation.py`` builds the site."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = runpy.run_path(str(ROOT / "tools" / "site.py"))


@pytest.mark.parametrize(
    ("written", "laid_out"),
    [
        ("words\n- one\n- two\n  goes on", "words\n\n- one\n- two\n    goes on"),
        ("1. one\n\n   more\n2. two", "1. one\n\n    more\n\n2. two"),
        ("- one\n  - below\n    goes on\n- two", "- one\n\n    - below\n        goes on\n\n- two"),
        ("1. one\n\n   ```\n   - no item\n   ```\n", "1. one\n\n    ```\n    - no item\n    ```\n\n"),
        ("```\n- no item\n  as it is\n```\n- one", "```\n- no item\n  as it is\n```\n\n- one"),
        ("- one\n\nwords\n\n    code", "- one\n\nwords\n\n    code"),
    ],
    ids=["continued", "paragraphs", "nested", "code in an item", "code", "behind"],
)
def test_lists_are_laid_out_as_python_markdown_reads_them(written: str, laid_out: str) -> None:
    assert "\n".join(TOOL["_with_lists"](written.split("\n"))) == laid_out


def test_a_link_to_a_folder_leads_to_a_page_and_directives_are_gone() -> None:
    text = "<!-- test: server -->\n# A\n\n[one](api/), [two](formats/), [three](client.md#time)\n"
    laid_out = TOOL["_laid_out"](text, ROOT / "docs")
    assert laid_out == "# A\n\n[one](api/README.md), [two](README.md), [three](client.md#time)\n"


def test_each_page_has_one_place_in_the_site() -> None:
    def names(entries: list[object]) -> list[str]:
        found: list[str] = []
        for entry in entries:
            if isinstance(entry, str):
                found.append(entry)
            else:
                assert isinstance(entry, dict)
                (inner,) = entry.values()
                found += names(inner) if isinstance(inner, list) else [inner]
        return found

    pages = [str(path.relative_to(ROOT)) for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"))]
    extra = [name for name in pages if "/" not in name]
    assert sorted(names(TOOL["_order"](extra))) == sorted(pages)
