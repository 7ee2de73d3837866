"""The bounds of a class and of a module: few methods, few fields, few imports of our own.

What is beyond stands in ``shape_beyond.toml`` with its number, below the reason. The numbers only go down: a class that
grows, a new one that is too large, and a number that is too high all fail.
"""

from __future__ import annotations

import ast
import runpy
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import pytest

HERE: Final = Path(__file__).parent
METHODS_MAX: Final = 25
FIELDS_MAX: Final = 12
IMPORTS_MAX: Final = 15
OURS: Final = ("cortado", "pyspark_cortado")


@cache
def trees() -> dict[str, ast.Module]:
    tidy = runpy.run_path(str(HERE / "test_tidy.py"))
    return {name: ast.parse(text) for name, text in tidy["sources"](*tidy["PRODUCT"]).items()}


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for name, tree in trees().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                yield f"{name} {node.name}", node


def methods_of(node: ast.ClassDef) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    return [each for each in node.body if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]


def methods() -> dict[str, int]:
    """Count names: overloads of one method are one."""
    return {name: len({each.name for each in methods_of(node)}) for name, node in classes()}


def fields() -> dict[str, int]:
    """Count the attributes that a class declares, or that its methods set."""
    found = {}
    for name, node in classes():
        declared = {each.target.id for each in node.body if _declares(each)}
        for method in methods_of(node):
            declared |= {each.attr for each in ast.walk(method) if _sets_own(each)}
        found[name] = len(declared)
    return found


def _declares(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)


def _sets_own(node: ast.AST) -> bool:
    is_set = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    return is_set and isinstance(node.value, ast.Name) and node.value.id == "self"


def imports() -> dict[str, int]:
    """Count the modules of our own that a module imports."""
    found = {}
    for name, tree in trees().items():
        modules: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module is not None:
                modules.add(node.module)
            elif isinstance(node, ast.Import):
                modules |= {each.name for each in node.names}
        found[name] = sum(each.split(".")[0] in OURS for each in modules)
    return found


@pytest.mark.parametrize(
    ("kind", "bound", "found"),
    [("methods", METHODS_MAX, methods), ("fields", FIELDS_MAX, fields), ("imports", IMPORTS_MAX, imports)],
)
def test_a_class_and_a_module_stay_within_their_bounds(kind: str, bound: int, found: object) -> None:
    assert callable(found)
    beyond = {name: count for name, count in found().items() if count > bound}
    assert beyond == listed(kind)


def listed(kind: str) -> dict[str, int]:
    by_reason: Mapping[str, dict[str, int]] = tomllib.loads((HERE / "shape_beyond.toml").read_text())[kind]
    return {name: count for each in by_reason.values() for name, count in each.items()}
