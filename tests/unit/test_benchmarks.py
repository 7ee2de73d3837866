"""`make bench` runs every benchmark there is, and each names its measure."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "benchmarks").glob("bench_*.py"))


def constants(path: Path) -> dict[str, ast.expr]:
    body = ast.parse(path.read_text()).body
    return {node.target.id: node.value for node in body if isinstance(node, ast.AnnAssign) and node.value is not None}  # type: ignore[union-attr]


def test_the_driver_names_every_benchmark() -> None:
    names = ast.literal_eval(constants(ROOT / "benchmarks" / "__main__.py")["NAMES"])
    assert sorted(names) == [path.stem.removeprefix("bench_") for path in FILES]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_benchmark_has_a_title_settings_and_a_run(path: Path) -> None:
    functions = {node.name: node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)}
    assert "TITLE" in constants(path)
    for name, returned in (("settings", "str"), ("run", "list[Measurement]")):
        arguments = functions[name].args
        assert len(arguments.defaults) == len(arguments.args), f"{name} needs arguments"
        returns = functions[name].returns
        assert returns is not None
        assert ast.unparse(returns) == returned
