"""Dependencies point one way: a walk over the imports finds no arrow that points up."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOP = ROOT / "src/cortado"
SOURCES = {
    "cortado.store": ROOT / "store",
    "cortado.raft": ROOT / "raft",
    "cortado.schema": ROOT / "schema",
    "cortado.proto": ROOT / "proto",
    "pyspark_cortado": ROOT / "spark_connector",
}

# The modules that each part may import of the others; its own modules always. Longest prefix wins.
SHARED = {"cortado.errors", "cortado.error_metadata", "cortado"}
ALLOWED = {
    "cortado.proto": set(),
    "cortado.schema": SHARED,
    "cortado.raft": SHARED | {"cortado.proto"},
    "cortado.store.clock": SHARED,
    "cortado.store.keys": SHARED | {"cortado.store.clock"},
    "cortado.store.engine": SHARED
    | {"cortado.store.files"}
    | {"cortado.store.clock", "cortado.store.keys", "cortado.store.observe.measures"},
    "cortado.store.log_files": SHARED
    | {"cortado.raft.log", "cortado.store.engine.failures", "cortado.store.engine.private_files"}
    | {"cortado.store.files"},
    "cortado.store.mvcc": SHARED | {"cortado.store.clock", "cortado.store.keys", "cortado.store.engine"},
}
BELOW_TABLES = SHARED | {
    "cortado.schema",
    "cortado.proto",
    "cortado.store.clock",
    "cortado.store.keys",
    "cortado.store.mvcc",
    "cortado.store.auth.owners",
}
ALLOWED |= {
    "cortado.store.h2": SHARED,
    "cortado.store.auth.owners": SHARED,
    "cortado.store.ports": SHARED | {"cortado.store.files"},
    "cortado.store.files": set(),
    "cortado.store.settings.sizes": SHARED,
    "cortado.store.wire": SHARED | {"cortado.proto"},
    "cortado.store.backup.runs": SHARED | {"cortado.store.clock", "cortado.store.keys"},
    "cortado.store.filter": BELOW_TABLES,
    "cortado.store.aggregate": BELOW_TABLES | {"cortado.store.filter", "cortado.store.catalog"},
    "cortado.store.auth": BELOW_TABLES | {"cortado.store.auth.tokens"},
    "cortado.store.auth.tokens": SHARED,
    "cortado.store.quotas": BELOW_TABLES | {"cortado.store.auth", "cortado.store.quotas.limits"},
    "cortado.store.quotas.limits": SHARED,
    "cortado.store.catalog": BELOW_TABLES,
    "cortado.store.collection": BELOW_TABLES | {"cortado.store.catalog"},
    "cortado.store.kv": BELOW_TABLES | {"cortado.store.catalog"},
    "cortado.store.jobs": BELOW_TABLES,
    "cortado.store.staging": BELOW_TABLES | {"cortado.store.catalog", "cortado.store.collection"},
    "cortado.store.tables": BELOW_TABLES
    | {"cortado.store.aggregate", "cortado.store.filter"}
    | {"cortado.store.catalog", "cortado.store.jobs", "cortado.store.staging"},
    "cortado.store.transactions": BELOW_TABLES | {"cortado.store.catalog", "cortado.store.kv", "cortado.store.tables"},
}
# The parts that hot paths and the client need of it; the rest of it looks at everything, from above.
OBSERVED = {"cortado.store.observe.measures", "cortado.store.observe.call"}
ALLOWED |= dict.fromkeys(OBSERVED, SHARED | OBSERVED)
NODE = (
    BELOW_TABLES
    | OBSERVED
    | {
        "cortado.raft",
        "cortado.store.engine",
        "cortado.store.log_files",
        "cortado.store.files",
        "cortado.store.settings.sizes",
        "cortado.store.aggregate",
        "cortado.store.auth",
        "cortado.store.filter",
        "cortado.store.catalog",
        "cortado.store.collection",
        "cortado.store.jobs",
        "cortado.store.kv",
        "cortado.store.staging",
        "cortado.store.tables",
    }
)
CLIENT = SHARED | {
    "cortado.store.h2",
    "cortado.store.ports.addresses",
    "cortado.store.auth.tokens",
    "cortado.store.observe.measures",
    "cortado.schema",
    "cortado.proto",
    "cortado.store.clock",
    "cortado.store.keys",
    "cortado.store.files",
    "cortado.store.quotas.limits",
    "cortado.store.wire",
    "cortado.store.catalog.descriptors",
}
PARTS_OF_A_NODE = {"cortado.store.process", "cortado.store.replica", "cortado.store.host"}
ALLOWED |= {
    "cortado.store.process": SHARED
    | {"cortado.raft", "cortado.store.clock", "cortado.store.mvcc", "cortado.store.engine", "cortado.store.log_files"}
    | {"cortado.store.files", "cortado.store.auth.caller", "cortado.store.auth.owners"},
    "cortado.store.replica": NODE | {"cortado.store.process"},
    "cortado.store.host": NODE | {"cortado.store.process", "cortado.store.replica"},
    "cortado.store.peers": SHARED
    | OBSERVED
    | {
        "cortado.proto",
        "cortado.raft",
        "cortado.store.process",
        "cortado.store.replica.write",
        "cortado.store.clock",
        "cortado.store.keys.packing",
        "cortado.store.engine",
        "cortado.store.ports",
        "cortado.store.wire",
    },
    "cortado.store.settings": SHARED
    | {
        "cortado.raft.settings",
        "cortado.store.auth.tokens",
        "cortado.store.process.limits",
        "cortado.store.gateway.limits",
        "cortado.store.files",
        "cortado.store.clock",
        "cortado.store.settings.sizes",
    },
    "cortado.store.server": NODE
    | {"cortado.store.ports", "cortado.store.h2", "cortado.store.quotas"}
    | {"cortado.store.backup.runs", "cortado.store.settings", "cortado.store.transactions"}
    | PARTS_OF_A_NODE
    | {"cortado.store.peers", "cortado.store.wire", "cortado.store.observe"},
    "cortado.store.observe": NODE
    | {"cortado.store.quotas"}
    | PARTS_OF_A_NODE
    | {"cortado.store.peers", "cortado.store.wire", "cortado.store.settings"},
    "cortado.store.client": CLIENT
    | {"cortado.store.backup.runs", "cortado.store.settings.client", "cortado.store.settings.reach"},
    "cortado.store.transfer": CLIENT | {"cortado.store.client"},
    "cortado.store.backup": CLIENT | {"cortado.store.client", "cortado.store.transfer", "cortado.store.backup.runs"},
    "cortado.store.gateway": CLIENT
    | {
        "cortado.store.ports",
        "cortado.store.auth.roles",
        "cortado.store.auth.owners",
        "cortado.store.client",
        "cortado.store.doctor.cluster_checks",
        "cortado.store.doctor.node_facts",
        "cortado.store.doctor.probes",
        "cortado.store.doctor.verdicts",
        "cortado.store.observe.call",
        "cortado.store.observe.exposition",
        "cortado.store.observe.families",
        "cortado.store.observe.gateway_definitions",
        "cortado.store.observe.http",
        "cortado.store.observe.logs",
        "cortado.store.observe.measures",
        "cortado.store.observe.process",
        "cortado.store.settings",
        "cortado.store.transfer.avro_file",
        "cortado.store.transfer.byte_text",
        "cortado.store.transfer.change_json",
        "cortado.store.transfer.formats",
        "cortado.store.transfer.key_text",
        "cortado.store.transfer.operation_json",
    },
    "cortado.store.local_cluster": CLIENT | {"cortado.store.client", "cortado.store.peers"},
    "cortado.store.local_cluster.demo": CLIENT | {"cortado.store.client", "cortado.store.transfer"},
    "cortado.store.doctor": CLIENT
    | {
        "cortado.store.client",
        "cortado.store.peers",
        "cortado.store.local_cluster",
        "cortado.store.settings",
        "cortado.store.log_files",
        "cortado.store.engine.failures",
    },
    "cortado.store.cli": CLIENT
    | {
        "cortado.store.doctor",
        "cortado.store.backup",
        "cortado.store.client",
        "cortado.store.transfer",
        "cortado.store.gateway",
        "cortado.store.server",
        "cortado.store.peers",
        "cortado.store.local_cluster",
        "cortado.store.settings",
    },
    "cortado.store": SHARED,
    "pyspark_cortado": CLIENT
    | {
        "cortado.store.aggregate",
        "cortado.store.client",
        "cortado.store.filter",
        "cortado.store.transfer.directory",
        "cortado.store.transfer.files",
    },
}


def _modules() -> list[tuple[str, Path]]:
    found = []
    for package, folder in SOURCES.items():
        for path in sorted(folder.rglob("*.py")):
            parts = path.relative_to(folder).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            if not path.stem.endswith(("_pb2", "_pb2_grpc")):
                found.append((".".join((package, *parts)), path))
    return found


def _imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] in ("cortado", "pyspark_cortado")}


def _longest(name: str, among: set[str] | dict[str, set[str]]) -> str | None:
    matches = [each for each in among if name == each or name.startswith(each + ".")]
    return max(matches, key=len, default=None)


def test_imports_point_down() -> None:
    assert [each for module, path in _modules() for each in _wrong_imports(module, path)] == []


def _wrong_imports(module: str, path: Path) -> Iterator[str]:
    home = _longest(module, ALLOWED)
    if home is None:
        yield f"{module} has no place in the architecture"
        return
    for name in sorted(_imports(path)):
        part = _longest(name, {key for key in ALLOWED if key != "cortado.store"})
        if part is None or part == home or name in ALLOWED[home]:
            continue
        if _longest(name, ALLOWED[home] - SHARED) is None:
            yield f"{module} imports {name}, which lies above it or beside it"


def test_no_modules_import_each_other() -> None:
    """Imports for types and those within functions count: a reader follows them, too."""
    files = dict(_modules())
    files |= {
        ".".join(("cortado", *path.relative_to(TOP).with_suffix("").parts)).removesuffix(".__init__"): path
        for path in (*TOP.glob("*.py"), *TOP.glob("errors/*.py"))
    }
    imports = {module: {name for name in _imports(path) if name in files} - {module} for module, path in files.items()}
    for module, names in imports.items():
        # "from package.module import name" names the package as well, which only its own names need.
        imports[module] = {name for name in names if not any(other.startswith(name + ".") for other in names)}
    assert list(_circles(imports)) == []


def _circles(imports: dict[str, set[str]]) -> Iterator[tuple[str, ...]]:
    """Yield the modules of each circle, sorted, once."""
    reached = {module: _reached(module, imports) for module in imports}
    told: set[str] = set()
    for module in sorted(imports):
        circle = {other for other in reached[module] if module in reached[other]}
        if circle and module not in told:
            told |= circle
            yield tuple(sorted(circle | {module}))


def _reached(module: str, imports: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    ahead = list(imports[module])
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += imports[name]
    return found


@pytest.mark.parametrize(
    ("module", "banned"),
    [
        ("cortado.store.client", ["lmdb", "numpy", "pyarrow", "cortado.store.engine", "cortado.store.server"]),
        ("pyspark_cortado", ["cortado", "grpc", "pyarrow", "numpy", "pandas"]),
        ("cortado.errors", ["grpc", "google.protobuf", "fastavro"]),
    ],
)
def test_importing_is_light(module: str, banned: list[str]) -> None:
    """In a process of its own: no import may drag in modules that its users may not have."""
    code = f"import sys; import {module}; print([name for name in {banned!r} if name in sys.modules])"
    if module == "pyspark_cortado":
        # Imports of pyspark itself do not count.
        code = (
            "import sys; import pyspark.sql.datasource; before = set(sys.modules); import pyspark_cortado; "
            f"print([name for name in {banned!r} if name in sys.modules and name not in before])"
        )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd="/")
    assert shown.stdout.strip() == "[]"
