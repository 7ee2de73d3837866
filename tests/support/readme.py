"""The blocks of README.md's taste, in their order."""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"


def taste() -> list[tuple[str, str]]:
    """(language, text) of each block: the servers, the command line, how to hurt them, Python, Spark."""
    section = README.read_text().partition("## A taste\n")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.M | re.S)
    assert [language for language, _ in blocks] == ["sh", "sh", "sh", "python", "python"]
    return blocks
