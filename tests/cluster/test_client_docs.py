"""The examples of docs/client.md and docs/errors.md run, one after the other, as they stand there."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from support.server_process import running_server

pytestmark = pytest.mark.process

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize(("page", "printed"), [("client.md", "serving\n"), ("errors.md", "")])
def test_the_examples_of_the_page_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, page: str, printed: str
) -> None:
    text = (DOCS / page).read_text()
    with running_server(tmp_path / "data") as server:
        # As a module, which is where annotations of its classes are looked up.
        module = ModuleType("page")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        for match in re.finditer(r"^```python\n(.*?)^```$", text, re.M | re.S):
            line = text[: match.start()].count("\n") + 1
            source = "\n" * line + match[1].replace("127.0.0.1:7621", server.endpoint)
            exec(compile(source, str(DOCS / page), "exec", dont_inherit=True), vars(module))
    assert capsys.readouterr().out == printed
