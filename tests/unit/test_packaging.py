"""What is installed: every package that the code imports is declared where it is needed, and nothing else is.

The base installation is the client and the command line. What else a module imports belongs to an extra, and a module
of the base may only reach for it inside a function, under ``TYPE_CHECKING``, or where it says which extra is missing.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# Where the distribution is not called as what is imported from it. Longest name wins.
DISTRIBUTION_OF = {
    "google.protobuf": "protobuf",
    "google.rpc": "googleapis-common-protos",
    "google_crc32c": "google-crc32c",
    "grpc": "grpcio",
    "grpc_health": "grpcio-health-checking",
    "grpc_reflection": "grpcio-reflection",
    "opentelemetry": "opentelemetry-sdk",
    "opentelemetry.exporter.otlp.proto.grpc": "opentelemetry-exporter-otlp-proto-grpc",
    "prometheus_client": "prometheus-client",
}
# Imported by pyspark, which does not ask for it, wherever Arrow is used.
NEEDED_BY_OTHERS = {"spark": {"pandas"}}

FOLDERS = {
    "cortado": "src/cortado",
    "cortado.proto": "proto",
    "cortado.raft": "raft",
    "cortado.schema": "schema",
    "cortado.store": "store",
    "pyspark_cortado": "spark_connector",
}
# Which installations a part is for: a package that it imports is in the base or in each of these. Longest prefix wins.
EXTRAS_OF = {
    "cortado": [],
    "cortado.raft": ["server"],
    "cortado.schema.columnar": ["server", "arrow", "pandas", "polars", "spark"],
    "cortado.schema.columnar.arrow": ["arrow", "pandas", "polars", "spark"],
    "cortado.schema.columnar.arrow_read": ["arrow", "pandas", "polars", "spark"],
    "cortado.schema.columnar.arrow_write": ["arrow", "pandas", "polars", "spark"],
    "cortado.store.transfer.directory": ["remote"],
    "cortado.store.client.arrow": ["arrow", "pandas", "polars", "spark"],
    "cortado.store.client.changes_arrow": ["arrow", "spark"],
    "cortado.store.client.pandas_frames": ["pandas"],
    "cortado.store.client.polars_frames": ["polars"],
    "cortado.store.doctor.host": ["server"],
    "cortado.store.engine": ["server"],
    "cortado.store.aggregate": ["server", "spark"],
    "cortado.store.filter": ["server", "spark"],
    "cortado.store.gateway": ["gateway"],
    "cortado.store.keys": ["server"],
    "cortado.store.log_files": ["server"],
    "cortado.store.mvcc": ["server"],
    "cortado.store.node": ["server"],
    "cortado.store.observe": ["server"],
    "cortado.store.observe.tracing": ["tracing"],
    "cortado.store.peers": ["server"],
    "cortado.store.server": ["server"],
    "cortado.store.tables": ["server"],
    # They bring what imports pyarrow where Parquet is asked for.
    "cortado.store.transfer.formats": ["arrow", "spark"],
    "cortado.store.transfer.parquet_source": ["arrow", "spark"],
    "cortado.store.transfer.writers": ["arrow", "spark"],
    "pyspark_cortado": ["spark"],
}


def _declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[<>=!~\[; ]", each)[0].lower() for each in requirements}


BASE = _declared(PROJECT["project"]["dependencies"])
EXTRAS = {name: _declared(each) for name, each in PROJECT["project"]["optional-dependencies"].items()}


def _modules() -> Iterator[tuple[str, Path]]:
    for package, folder in FOLDERS.items():
        # src/cortado's folders are links to the others.
        paths = (ROOT / folder).glob("*.py") if package == "cortado" else (ROOT / folder).rglob("*.py")
        for path in sorted(paths):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join((package, *(part for part in parts if part != "__init__"))), path


def _imports(path: Path) -> set[str]:
    """The distributions of other people that a module imports, at the top or later, but not for type checkers alone."""
    names: set[str] = set()
    for node in _run(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names if node.module == "google"}
    ours = {"cortado", "pyspark_cortado", "google", *sys.stdlib_module_names}
    return {_distribution(name) for name in names if name.split(".")[0] not in ours or name.startswith("google.")}


def _run(tree: ast.Module) -> Iterator[ast.AST]:
    """What is in a module, but for what only type checkers see."""
    nodes: list[ast.AST] = [tree]
    while nodes:
        node = nodes.pop()
        yield node
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            nodes += node.orelse
        else:
            nodes += ast.iter_child_nodes(node)


def _distribution(module: str) -> str:
    known = _longest(module, DISTRIBUTION_OF)
    return DISTRIBUTION_OF[known] if known is not None else module.split(".")[0]


def _longest(name: str, among: dict[str, object] | dict[str, str] | dict[str, list[str]]) -> str | None:
    return max((each for each in among if name == each or name.startswith(each + ".")), key=len, default=None)


@cache
def _imports_of_modules() -> dict[str, set[str]]:
    """What each module imports: read by the first test that asks, since every worker collects this file."""
    return {module: _imports(path) for module, path in _modules()}


def test_what_a_module_imports_is_declared_for_each_installation_it_is_for() -> None:
    wrong = []
    for module, imported in _imports_of_modules().items():
        home = _longest(module, EXTRAS_OF)
        if home is None:
            wrong += [f"{module} imports {sorted(imported)}: for which installation is it?"] if imported else []
            continue
        for extra in EXTRAS_OF[home] or ["base"]:
            missing = imported - BASE - EXTRAS.get(extra, set())
            wrong += [f"{module} imports {sorted(missing)}, which {extra} does not bring"] if missing else []
    assert wrong == []


def test_what_is_declared_is_imported() -> None:
    imported = set().union(*_imports_of_modules().values())
    assert imported >= BASE, f"nothing imports {sorted(BASE - imported)}"
    for extra, declared in EXTRAS.items():
        dead = declared - imported - NEEDED_BY_OTHERS.get(extra, set())
        assert not dead, f"nothing imports {sorted(dead)} of [{extra}]"


def test_every_requirement_has_a_lower_bound() -> None:
    groups = [PROJECT["project"]["dependencies"], *PROJECT["project"]["optional-dependencies"].values()]
    for requirement in (each for group in groups for each in group):
        assert ">=" in requirement or "==" in requirement, f"{requirement}: which version is old enough to work?"


def test_what_is_declared_is_locked() -> None:
    locked = {line.split("==")[0] for line in (ROOT / "requirements.lock").read_text().splitlines() if "==" in line}
    for name in BASE.union(*EXTRAS.values(), _declared(PROJECT["dependency-groups"]["dev"])):
        assert name in locked, f"{name} is not in requirements.lock: run 'make lock'"


def test_files_that_are_not_python_are_packaged() -> None:
    patterns = PROJECT["tool"]["setuptools"]["package-data"]["*"]
    others = {
        path.suffix or path.name
        for folder in FOLDERS.values()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix not in (".py", ".md")
    }
    unpackaged = {other for other in others if not any(pattern.endswith(other) for pattern in patterns)}
    assert not unpackaged, f"package-data does not name {sorted(unpackaged)}"


def test_the_version_is_written_once_for_people_and_once_for_tools() -> None:
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/cortado/__init__.py").read_text(), re.MULTILINE)
    assert version is not None
    assert version[1] == PROJECT["project"]["version"]
