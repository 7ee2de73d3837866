"""Draws the pictures of the pages: each ``docs/pictures/NAME.txt`` becomes ``NAME.svg`` beside it.

    .venv/bin/python tools/pictures.py [--check]

The same text gives the same bytes, and ``tests/unit/test_pictures.py`` compares them with the committed ones. A picture
has its own background, so it can be read on light and on dark pages; it follows the reader's preference. Text that does
not fit into its box is refused.

A text begins with ``title``, ``about`` (for readers who do not see it) and ``size WIDTH HEIGHT``. Lines with ``#`` are
comments. A plan says where things stand::

    box KIND X Y WIDTH HEIGHT | Strong line | small line ...
    area KIND X Y WIDTH HEIGHT                 a box without text, behind others
    text X Y CLASS ... | words                 classes: small, strong, middle, end
    line CLASS ... | PATH                      classes: arrow, both, faint, dashed, thick
    dot KIND X Y

A sequence has lanes, and steps from top to bottom; then ``size`` has a width alone::

    lane NAME KIND X | Strong line | small line
    send FROM TO [faint] | words               an arrow between two lanes
    do LANE [WIDTH] | Strong line | small line ...
    part | words                               a line over all lanes, below which something else begins
    beside                                     the next step begins beside the last one
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parents[1] / "docs" / "pictures"
KINDS: Final = ("cluster", "caller", "gateway", "node", "disk", "plain", "refused")
STRONG_PX: Final = 15.0
SMALL_PX: Final = 12.5
LANE_HEAD: Final = (24, 150, 48)
"""Top, width and height of a lane's head."""

# (colour on light, colour on dark): of a kind its fill and its stroke.
COLOURS: Final = {
    "page": (("#ffffff", "#d0d7de"), ("#0d1117", "#30363d")),
    "cluster": (("#f6f8fa", "#8c959f"), ("#161b22", "#6e7681")),
    "caller": (("#ddf4ff", "#0969da"), ("#0c2d4d", "#58a6ff")),
    "gateway": (("#fbefff", "#8250df"), ("#2b1d4a", "#bc8cff")),
    "node": (("#dafbe1", "#1a7f37"), ("#0f2f1a", "#3fb950")),
    "disk": (("#fff8c5", "#9a6700"), ("#352a09", "#d29922")),
    "plain": (("#ffffff", "#8c959f"), ("#0d1117", "#6e7681")),
    "refused": (("#ffebe9", "#cf222e"), ("#3c1618", "#f85149")),
}
LINES: Final = ("#57606a", "#8b949e")
TEXT: Final = {"": ("#1f2328", "#e6edf3"), ".small": ("#57606a", "#9da7b1")}
FIXED_STYLE: Final = """\
    .cluster { stroke-dasharray: 6 4 }
    .line { fill: none; stroke-width: 1.6 }
    .faint { stroke-opacity: 0.45 }
    .dashed { stroke-dasharray: 5 4 }
    .thick { stroke-width: 3 }
    .behind { stroke-width: 0 }
    text { font-family: -apple-system, "Segoe UI", "DejaVu Sans", Helvetica, Arial, sans-serif; font-size: 15px }
    .small { font-size: 12.5px }
    .middle { text-anchor: middle }
    .end { text-anchor: end }
    .strong { font-weight: 600 }
"""


class Unreadable(ValueError):
    """A line that has no meaning, or whose text has no room."""


@dataclass(slots=True)
class Drawing:
    """The elements of a picture, in the order in which they cover each other."""

    title: str = ""
    about: str = ""
    width: int = 0
    height: int = 0
    behind: list[str] = field(default_factory=list)
    front: list[str] = field(default_factory=list)

    def box(self, kind: str, place: tuple[float, float, float, float], lines: list[str]) -> None:
        """Add a box with its lines in the middle, the first one strong."""
        x, y, width, height = place
        self.front.append(self._frame(kind, place))
        if len(lines) * 18 + 2 > height:
            raise Unreadable(f"{len(lines)} lines in a box of {height:g}: {lines[0]}")
        line_y = y + height / 2 - 9 * len(lines) + 14
        for number, line in enumerate(lines):
            if width_of(line, strong=not number) > width - 8:
                raise Unreadable(f"wider than its box of {width:g}: {line}")
            self.text(x + width / 2, line_y + 18 * number, ("middle", "small" if number else "strong"), line)

    def area(self, kind: str, place: tuple[float, float, float, float]) -> None:
        """Add a box without text, behind all that is no area."""
        self.behind.append(self._frame(kind, place))

    def dot(self, kind: str, x: float, y: float) -> None:
        """Add a small circle around that place."""
        self._inside(x - 6, y - 6, x + 6, y + 6)
        self.front.append(f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="6"/>')

    def _frame(self, kind: str, place: tuple[float, float, float, float]) -> str:
        x, y, width, height = place
        if kind not in KINDS:
            raise Unreadable(f"no such kind of box: {kind}")
        self._inside(x, y, x + width, y + height)
        return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="8"/>'

    def text(self, x: float, y: float, classes: tuple[str, ...], words: str) -> None:
        """Add words whose line ends at ``y``. Raises Unreadable if they leave the picture."""
        width = width_of(words, strong="small" not in classes)
        left = x - (width / 2 if "middle" in classes else width if "end" in classes else 0)
        self._inside(left, y - STRONG_PX, left + width, y)
        named = f' class="{" ".join(classes)}"' if classes else ""
        self.front.append(f'<text{named} x="{x:g}" y="{y:g}">{escape(words, quote=False)}</text>')

    def line(self, classes: tuple[str, ...], path: str) -> None:
        """Add a path. An arrow has a head at its end, ``both`` has one at its beginning, too."""
        heads = ' marker-end="url(#arrow)"' if {"arrow", "both"} & {*classes} else ""
        heads += ' marker-start="url(#arrow)"' if "both" in classes else ""
        drawn = " ".join(("line", *(each for each in classes if each not in ("arrow", "both"))))
        self.front.append(f'<path class="{drawn}" d="{path}"{heads}/>')

    def label(self, x: float, y: float, classes: tuple[str, ...], words: str) -> None:
        """Add words on the colour of the page, over lines that cross them."""
        width = width_of(words, strong="small" not in classes) + 8
        left = x - width / 2 if "middle" in classes else x - 4
        self.front.append(f'<rect class="page behind" x="{left:g}" y="{y - 13:g}" width="{width:g}" height="17"/>')
        self.text(x, y, classes, words)

    def _inside(self, left: float, top: float, right: float, bottom: float) -> None:
        if left < 4 or top < 4 or right > self.width - 4 or (self.height and bottom > self.height - 4):
            raise Unreadable(f"outside of the picture: {left:g},{top:g} to {right:g},{bottom:g}")

    def svg(self) -> str:
        """Return the file."""
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {self.width} {self.height}" role="img" '
            'aria-labelledby="title about">',
            f'  <title id="title">{escape(self.title, quote=False)}</title>',
            f'  <desc id="about">{escape(self.about, quote=False)}</desc>',
            "  <style>",
            *_style(dark=False),
            FIXED_STYLE.rstrip(),
            "    @media (prefers-color-scheme: dark) {",
            *(f"  {rule}" for rule in _style(dark=True)),
            "    }",
            "  </style>",
            "  <defs>",
            '    <marker id="arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto-start-reverse"><path class="head" d="M0 0 10 5 0 10z"/></marker>',
            "  </defs>",
            f'  <rect class="page" x="0.5" y="0.5" width="{self.width - 1}" height="{self.height - 1}" rx="10"/>',
            *(f"  {each}" for each in (*self.behind, *self.front)),
            "</svg>",
        ]
        return "\n".join(parts) + "\n"


def _style(*, dark: bool) -> Iterator[str]:
    for kind, colours in COLOURS.items():
        fill, stroke = colours[dark]
        yield f"    .{kind} {{ fill: {fill}; stroke: {stroke} }}"
    yield f"    .line {{ stroke: {LINES[dark]} }}"
    yield f"    .head {{ fill: {LINES[dark]} }}"
    for selector, text_colours in TEXT.items():
        yield f"    {selector or 'text'} {{ fill: {text_colours[dark]} }}"


def width_of(words: str, *, strong: bool = False) -> float:
    """Return an upper estimate of the width in pixels, in any of the named fonts."""
    narrow = sum(each in "iljtfrI.,:;'|()[] 1" for each in words)
    wide = sum(each in "mwMW→≤@" for each in words)
    plain = len(words) - narrow - wide
    if strong:
        return (0.45 * narrow + 0.7 * plain + 1.05 * wide) * STRONG_PX
    return (0.36 * narrow + 0.62 * plain + 0.97 * wide) * SMALL_PX


@dataclass(slots=True)
class Sequence:
    """The steps of a sequence, from top to bottom."""

    drawing: Drawing
    lanes: dict[str, int] = field(default_factory=dict)
    y: int = LANE_HEAD[0] + LANE_HEAD[2] + 16
    """The line at which the next step begins."""
    last_y: int = 0

    def add_lane(self, name: str, kind: str, x: int, lines: list[str]) -> None:
        top, width, height = LANE_HEAD
        self.lanes[name] = x
        self.drawing.box(kind, (x - width / 2, top, width, height), lines)

    def send(self, start: str, end: str, is_faint: bool, words: str) -> None:
        self._begin(38)
        left, right = self.lanes[start], self.lanes[end]
        arrow_y = self.y - 12
        room = abs(right - left) - 12
        if width_of(words) > room:
            raise Unreadable(f"wider than its arrow of {room}: {words}")
        self.drawing.label((left + right) / 2, arrow_y - 7, ("middle", "small"), words)
        gap = 4 if right > left else -4
        self.drawing.line(("arrow", "dashed") if is_faint else ("arrow",), f"M{left} {arrow_y}H{right - gap}")

    def do(self, lane: str, width: int, lines: list[str]) -> None:
        height = 18 * len(lines) + 12
        self._begin(height + 12)
        self.drawing.box("plain", (self.lanes[lane] - width / 2, self.y - height - 6, width, height), lines)

    def part(self, words: str) -> None:
        self._begin(40)
        self.drawing.line(("faint",), f"M24 {self.y - 26}H{self.drawing.width - 24}")
        self.drawing.label(24, self.y - 6, ("strong",), words)

    def beside(self) -> None:
        self.y = self.last_y

    def _begin(self, height: int) -> None:
        self.last_y = self.y
        self.y += height

    def end(self) -> None:
        """Set the height, and draw the lanes' lines."""
        top, _, height = LANE_HEAD
        self.drawing.height = self.y + 16
        for x in self.lanes.values():
            self.drawing.behind.append(f'<path class="line faint" d="M{x} {top + height}V{self.y}"/>')


def drawn(text: str) -> str:
    """Return the picture that a text describes. Raises Unreadable with the line that is wrong."""
    drawing = Drawing()
    sequence = Sequence(drawing)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            head, *lines = (each.strip() for each in line.split("|"))
            try:
                _draw(sequence, head, lines)
            except (Unreadable, KeyError, ValueError, IndexError) as problem:
                raise Unreadable(f"line {number}: {problem}: {line}") from None
    if sequence.lanes:
        sequence.end()
    if not (drawing.title and drawing.about and drawing.height):
        raise Unreadable("without title, about or size")
    return drawing.svg()


def _draw(sequence: Sequence, head: str, lines: list[str]) -> None:
    drawing = sequence.drawing
    match head.split():
        case ["title", *words]:
            drawing.title = " ".join(words)
        case ["about", *words]:
            drawing.about = " ".join((drawing.about, *words)).strip()
        case ["size", width, *height]:
            drawing.width, drawing.height = int(width), int(height[0]) if height else 0
        case ["box", kind, x, y, width, height]:
            drawing.box(kind, (float(x), float(y), float(width), float(height)), lines)
        case ["area", kind, x, y, width, height]:
            drawing.area(kind, (float(x), float(y), float(width), float(height)))
        case ["text", x, y, *classes]:
            drawing.text(float(x), float(y), tuple(classes), lines[0])
        case ["line", *classes]:
            drawing.line(tuple(classes), lines[0])
        case ["dot", kind, x, y]:
            drawing.dot(kind, float(x), float(y))
        case ["lane", name, kind, x]:
            sequence.add_lane(name, kind, int(x), lines)
        case ["send", start, end, *faint]:
            sequence.send(start, end, bool(faint), lines[0])
        case ["do", lane, *width]:
            sequence.do(lane, int(width[0]) if width else LANE_HEAD[1], lines)
        case ["part"]:
            sequence.part(lines[0])
        case ["beside"]:
            sequence.beside()
        case _:
            raise Unreadable("no such line")


def main() -> int:
    """Draw all pictures, or with ``--check`` name those that differ."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the pages.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a picture is stale")
    is_check = parser.parse_args().check
    stale = []
    for source in sorted(FOLDER.glob("*.txt")):
        picture = source.with_suffix(".svg")
        made = drawn(source.read_text())
        if not picture.exists() or picture.read_text() != made:
            stale.append(picture.name)
            if not is_check:
                picture.write_text(made)
    sys.stdout.write(f"{'stale' if is_check else 'drawn'}: {', '.join(stale) or 'none'}\n")
    return int(is_check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
