"""The examples of docs/client.md run, one after the other, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from support.server_process import running_server

pytestmark = pytest.mark.process

PAGE = Path(__file__).parents[2] / "docs" / "client.md"


def test_the_examples_of_the_page_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGE.read_text()
    with running_server(tmp_path / "data") as server:
        names: dict[str, Any] = {}
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
            line = text[: match.start()].count("\n") + 1
            source = "\n" * line + match[1].replace("127.0.0.1:7621", server.endpoint)
            exec(compile(source, str(PAGE), "exec"), names)
    assert capsys.readouterr().out == "serving\n"
