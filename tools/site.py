"""Lays out the pages for mkdocs, which builds the site that ``make docs`` writes.

    .venv/bin/python tools/site.py build/pages

The pages stay as they are for readers of the repository. The copy differs in four things:

- The directives of tests are taken out.
- Blocks in lists are indented by four spaces, and lists begin behind an empty line, as Python-Markdown wants it.
- A link to a folder leads to its README, or to the index of all pages.
- Files outside of ``docs/`` that a page links to are copied beside it, so each link has a target.

The order of the site is that of ``docs/README.md``. A page of it loads nothing from other hosts.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
INDEX: Final = DOCS / "README.md"
SUFFIXES: Final = (".md", ".svg", ".txt")

CONFIGURATION: Final = """\
site_name: Cortado
docs_dir: source
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.indexes, navigation.top, content.code.copy, search.highlight, toc.follow]
  palette:
    - {media: "(prefers-color-scheme: light)", scheme: default, primary: brown,
       toggle: {icon: material/weather-night, name: Dark}}
    - {media: "(prefers-color-scheme: dark)", scheme: slate, primary: brown,
       toggle: {icon: material/weather-sunny, name: Light}}
extra:
  generator: false
plugins: [search]
markdown_extensions:
  - attr_list
  - tables
  - sane_lists
  - pymdownx.superfences
  - pymdownx.highlight
  - toc:
      permalink: true
      slugify: !!python/object/apply:pymdownx.slugs.slugify {kwds: {case: lower}}
validation:
  nav: {omitted_files: warn, not_found: warn, absolute_links: warn}
  links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}
nav: """

_LINK: Final = re.compile(r"(?<=\]\()([^)\s:#]+)(?=[)#])")
_DIRECTIVE: Final = re.compile(r"^<!-- test: [^\n]*-->\n+", re.MULTILINE)
_FENCE: Final = re.compile(r"(`{3,}|~{3,})")
_ITEM: Final = re.compile(r"(?:[-*]|\d+\.) +(?=\S)")


def main() -> int:
    """Write ``source/`` and ``mkdocs.yml`` below the named folder, which is replaced."""
    target = Path(sys.argv[1]).resolve()
    shutil.rmtree(target, ignore_errors=True)
    waiting = [*ROOT.glob("*.md"), ROOT / "llms.txt", *(path for path in DOCS.rglob("*") if path.suffix in SUFFIXES)]
    seen = set(waiting)
    while waiting:
        page = waiting.pop()
        copy = target / "source" / page.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if page.suffix != ".md":
            shutil.copyfile(page, copy)
            continue
        text = _laid_out(page.read_text(), page.parent)
        copy.write_text(text)
        linked = {(page.parent / name).resolve() for name in _LINK.findall(text)}
        more = {each for each in linked - seen if each.is_file()}
        seen |= more
        waiting += sorted(more)
    extra = [str(path.relative_to(ROOT)) for path in seen if path.suffix == ".md" and DOCS not in path.parents]
    (target / "mkdocs.yml").write_text(CONFIGURATION + json.dumps(_order(sorted(extra))) + "\n")
    return 0


def _laid_out(text: str, folder: Path) -> str:
    """Return the text of a page in that folder as mkdocs wants it."""

    def led(match: re.Match[str]) -> str:
        found = (folder / match[0]).resolve()
        if not found.is_dir():
            return match[0]
        readme = found / "README.md"
        return os.path.relpath(readme if readme.is_file() else INDEX, folder)

    return "\n".join(_with_lists(_LINK.sub(led, _DIRECTIVE.sub("", text)).split("\n")))


def _with_lists(lines: list[str]) -> Iterator[str]:
    """Yield the lines with the content of each list item indented by four spaces."""
    fence, last, at = "", "", 0
    while at < len(lines):
        line = lines[at]
        at += 1
        opened = _FENCE.match(line)
        if opened and (not fence or line.startswith(fence)):
            fence = "" if fence else opened[1]
        item = None if fence else _ITEM.match(line)
        if item is None:
            yield line
            last = line
            continue
        if last.strip() and not last.startswith(" ") and not _ITEM.match(last):
            yield ""
        end = _end_of_item(lines, at, len(item[0]))
        body = [each[len(item[0]) :] if each[:1] == " " else each for each in lines[at:end]]
        first, *rest = _with_lists([line[item.end() :], *body])
        yield f"{item[0]}{first}"
        yield from (f"    {each}" if each else "" for each in rest)
        # Else the next item would be a line of the last paragraph of this one.
        yield from [""] if "" in rest else []
        at, last = end, line


def _end_of_item(lines: list[str], at: int, width: int) -> int:
    """Return the number of the first line that does not belong to the list item."""
    end = at
    for number in range(at, len(lines)):
        if lines[number].startswith(" " * width):
            end = number + 1
        elif lines[number].strip():
            break
    return end


def _order(extra: list[str]) -> list[Any]:
    """Return the order of all pages: that of the index, with decisions and calls below theirs."""
    order: list[Any] = [{"Cortado": "README.md"}]
    for section in re.split(r"^## ", INDEX.read_text(), flags=re.MULTILINE)[1:]:
        title, _, body = section.partition("\n")
        linked = [(INDEX.parent / name).resolve() for name in _LINK.findall(body)]
        entries: list[Any] = [] if order[1:] else ["docs/README.md"]
        formats: list[str] = []
        for page in (each for each in linked if each.suffix == ".md"):
            name = str(page.relative_to(ROOT))
            if page.name == "README.md":
                below = sorted(str(each.relative_to(ROOT)) for each in page.parent.glob("*.md") if each != page)
                (heading, *_) = re.findall(r"^# (.*)$", page.read_text(), re.MULTILINE)
                entries.append({heading.replace("`", ""): [name, *below]})
            else:
                (formats if page.parent.name == "formats" else entries).append(name)
        order.append({title: [*entries, {"Formats": formats}] if formats else entries})
    order.append({"Contribute": [each for each in extra if each != "README.md"]})
    return order


if __name__ == "__main__":
    sys.exit(main())
