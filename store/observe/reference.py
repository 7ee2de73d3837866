"""The tables of docs/metrics.md, from the definitions; ``python -m cortado.store.observe.reference`` writes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from cortado.store.observe.definitions import PARTS, Definition, Part
from cortado.store.observe.gateway_definitions import GATEWAY


def reference() -> str:
    """Return every part with a table, as Markdown."""
    return "\n".join(line for part in (*PARTS, GATEWAY) for line in _part(part))


def _part(part: Part) -> Iterator[str]:
    yield f"### {part.title}\n"
    yield f"{part.about}\n"
    yield "| metric | kind | labels | meaning |"
    yield "|---|---|---|---|"
    for each in part.definitions:
        labels = ", ".join(f"`{label}`" for label in each.labels)
        yield f"| `{each.full_name}` | {each.kind} | {labels} | {_meaning(each)} |"
    yield ""


def _meaning(definition: Definition) -> str:
    return f"{definition.meaning} Only {definition.when}." if definition.when else definition.meaning


if __name__ == "__main__":
    sys.stdout.write(reference())
