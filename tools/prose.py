"""Counts roundabout sentences in docstrings, comments and pages, by folder.

    .venv/bin/python tools/prose.py [--list] [PATH ...]

A sentence is roundabout if a clause stands for a noun ("who is unknown is refused", "what they need", "of which"), if
*where* states a condition ("where there is none"), or if it has more than 25 words. Parts between colons and semicolons
count as sentences. Questions are left out, and so is a relative clause behind its noun ("callers who wait").

A hit is a place to look at, and no verdict. ``tests/unit/test_tidy.py`` bounds the shares.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDERS: Final = (
    "raft",
    "schema",
    "store",
    "spark_connector",
    "proto",
    "tests",
    "benchmarks",
    "examples",
    "tools",
    "docs",
)
WORDS_MAX: Final = 25

_VERBS: Final = (
    "is|are|was|were|has|had|may|can|must|does|did|it|they|he|we|a|an|the|this|one|each|many|others|comes?|came|changed"
    "|changes|goes|stands?|lies|reads?|writes?|counts?|keeps?|holds?|makes?|needs?|follows|belongs|waits?|runs?"
)
_PEOPLE: Final = r"(?:callers?|clients?|users?|operators?|readers?|writers?|people|those|one)"
_ROUNDABOUT: Final = re.compile(
    rf"(?<!\w)(?:who|whom)\b|\bwhoever\b|\b(?:no|some|every|any)body\b|\b(?:what|whatever) (?:{_VERBS})\b"
    r"|\bof (?:which|whom|what)\b|\b(?:is|are) (?-i:none)\b|\bwhere (?:there|none|nothing|no)\b"
    r"|(?-i:^(?:Of|Where|What)\b)",
    re.IGNORECASE,
)
_BEHIND_ITS_NOUN: Final = re.compile(rf"\b{_PEOPLE},? who(?:m)?\b", re.IGNORECASE)
_PYTHON: Final = re.compile(
    r'^[ \t]*[rf]?"""(?P<docstring>.*?)"""|"""(?:.*?)"""'
    r"|^(?P<lines>(?:[ \t]*#(?!!)[^\n]*\n)+)|  # (?P<behind>[^\n]*)$",
    re.MULTILINE | re.DOTALL,
)
_PROTO: Final = re.compile(r"^(?P<lines>(?:[ \t]*//[^\n]*\n)+)", re.MULTILINE)
_CODE: Final = re.compile(r"``[^`]*``|`[^`\n]*`|(?<=\])\([^)\s]*\)")
_IN_COLUMNS: Final = re.compile(r"^.*\S {3,}\S.*$", re.MULTILINE)
_BLOCK: Final = re.compile(r"^ *```.*?^ *```$|^<!--.*?-->$|^#[^\n]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Sentence:
    file: str
    line: int
    text: str

    @property
    def is_roundabout(self) -> bool:
        if self.text.endswith("?"):
            return False
        if len(re.findall(r"[\w'-]+", self.text)) > WORDS_MAX:
            return True
        return bool(_ROUNDABOUT.search(_BEHIND_ITS_NOUN.sub("", self.text)))


def sentences(file: Path) -> Iterator[Sentence]:
    """Yield the sentences of a Python, proto or Markdown file, each with the line of its paragraph."""
    text = file.read_text()
    found = {".py": _python, ".proto": _proto, ".md": _markdown}[file.suffix](text)
    name = str(file.relative_to(ROOT)) if file.is_relative_to(ROOT) else str(file)
    for start, passage in found:
        line = text.count("\n", 0, start) + 1
        # Code and the targets of links are no words, and lines in columns are no sentences.
        words = _CODE.sub("X", _IN_COLUMNS.sub("", passage))
        for each in re.split(r"(?<=[.:;?!])\s+", " ".join(words.split())):
            if len(each) >= 12:
                yield Sentence(name, line, each)


def _python(text: str) -> Iterator[tuple[int, str]]:
    for match in _PYTHON.finditer(text):
        if match["docstring"] is not None:
            yield from _paragraphs(match.start("docstring"), match["docstring"])
        elif match["lines"] is not None:
            yield match.start(), re.sub(r"^[ \t]*#+", "", match["lines"], flags=re.MULTILINE)
        elif match["behind"] is not None:
            yield match.start(), match["behind"]


def _proto(text: str) -> Iterator[tuple[int, str]]:
    for match in _PROTO.finditer(text):
        yield match.start(), re.sub(r"^[ \t]*//", "", match["lines"], flags=re.MULTILINE)


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    prose = _BLOCK.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), text)
    for start, passage in _paragraphs(0, prose):
        cells = (
            [cell for cell in passage.split("|") if len(cell) > 20] if passage.lstrip().startswith("|") else [passage]
        )
        for cell in cells:
            yield start, cell


def _paragraphs(start: int, text: str) -> Iterator[tuple[int, str]]:
    for match in re.finditer(r"(?:[^\n]*\S[^\n]*\n?)+", text):
        yield start + match.start(), match[0]


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files with prose that people wrote, below these paths. Links and generated stubs are left out."""
    for path in paths:
        below = sorted(path.rglob("*")) if path.is_dir() else [path]
        for each in below:
            is_linked = any(up.is_symlink() for up in (each, *each.parents) if up != ROOT)
            if each.suffix in (".py", ".proto", ".md") and "_pb2" not in each.name and not is_linked:
                yield each


def share(path: Path) -> float:
    """Return the percentage of roundabout sentences below a path."""
    found = [each.is_roundabout for file in files([path]) for each in sentences(file)]
    return 100 * sum(found) / max(1, len(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH")
    parser.add_argument("--list", action="store_true", help="print the roundabout sentences")
    given = parser.parse_args()
    for path in given.paths or [ROOT / folder for folder in FOLDERS]:
        found = [each for file in files([path.resolve()]) for each in sentences(file)]
        hits = [each for each in found if each.is_roundabout]
        if given.list:
            sys.stdout.writelines(f"{each.file}:{each.line}: {each.text}\n" for each in hits)
        sys.stdout.write(
            f"{path}: {len(hits)} of {len(found)} sentences ({100 * len(hits) / max(1, len(found)):.1f}%)\n"
        )


if __name__ == "__main__":
    main()
