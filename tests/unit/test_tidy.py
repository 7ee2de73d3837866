"""The bounds that keep the code small enough to read: files, functions and their parameters have bounds, and all of it
is used.

A bound is here, and not in a style guide, so that going past it is a decision: the exceptions are listed with their
reason, and one that is no longer needed must go.
"""

from __future__ import annotations

import ast
import re
import runpy
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PRODUCT: Final = ("raft", "schema", "store", "spark_connector", "src/cortado")
OTHERS: Final = ("tests", "benchmarks", "examples", "tools")

FILE_LINES_MAX: Final = 500
TEST_LINES_MAX: Final = 550
FUNCTION_LINES_MAX: Final = 70
PARAMETERS_MAX: Final = 8

FILES_BEYOND: Final = {
    "tests/unit/raft/test_raft_rules.py": "one directed scenario for each rule of the log",
    "tests/support/raft_world.py": "the world of those scenarios",
}
FUNCTIONS_BEYOND: Final = {}
PARAMETERS_BEYOND: Final[dict[str, str]] = {}
NAMES_BANNED: Final = re.compile(r"(^|_)(utils?|helpers?|misc|manager|data2)(_|$)|Manager|Helper|Utils?$")

# A method that is found by its name, not by a call in our code.
CALLED_BY_OTHERS: Final = {
    "raft/engine.py": "PySyncObj",
    "raft/journal.py": "PySyncObj",
    "store/observe/logs.py": "logging",
    "store/cli/input.py": "io",
    "store/gateway/connections.py": "uvicorn",
    "store/gateway/serving.py": "uvicorn",
    "store/peers/connection.py": "asyncio",
    "store/cli/options.py": "click",
    "spark_connector/changes.py": "Spark",
    "spark_connector/stream_reader.py": "Spark",
    "store/transfer/files.py": "pyarrow",
    "spark_connector/source.py": "Spark",
}
ROUNDABOUT_MAX: Final = {
    "raft": 2.5,
    "schema": 1.7,
    "store": 1.5,
    "spark_connector": 1.5,
    "proto": 0.9,
    "tests": 0.7,
    "benchmarks": 1.3,
    "examples": 0.7,
    "tools": 1.1,
    "docs": 2.6,
}
"""Roundabout sentences in a hundred, by folder. These numbers only go down."""
ROUNDABOUT_SLACK: Final = 0.5
UNUSED_BEYOND: Final[dict[str, str]] = {}
CLOCKS: Final = re.compile(r"\btime\.(monotonic|perf_counter|process_time|thread_time)(_ns)?\(\)")
TIMED_BEYOND: Final = {
    "tests/support/server_process.py": "the deadline of a wait",
    "tests/unit/peers/test_streams_between_nodes.py": "the difference of two clocks, which is no duration",
    "tests/unit/client/test_client_leaders.py": "a pace: whoever takes longer may ask more often",
}


@cache
def sources(*folders: str) -> dict[str, str]:
    """Return the text of each file that people wrote, by its path from the root."""
    found = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            is_linked = any(parent.is_symlink() for parent in (path, *path.parents) if parent != ROOT)
            if "_pb2" not in path.name and not is_linked:
                found[str(path.relative_to(ROOT))] = path.read_text()
    return found


@dataclass(frozen=True, slots=True)
class Defined:
    """A function, a method or a class, and its values for the bounds."""

    file: str
    path: str
    """The names that lead to it."""
    is_class: bool
    lines: int = 0
    parameters: int = 0
    """How many it takes, without the object that it is a method of."""
    is_command: bool = False
    """Whether its parameters are the options of a command, which ``cortado COMMAND --help`` lists."""

    @property
    def name(self) -> str:
        return self.path.rpartition(".")[2]

    def __str__(self) -> str:
        return f"{self.file} {self.path}"


@cache
def defined(*folders: str) -> list[Defined]:
    """Return all that the files of these folders define. The trees are not kept: there are millions of nodes in
    them."""
    found = []
    for file, text in sources(*folders).items():
        statements: list[tuple[tuple[str, ...], ast.AST]] = [((), ast.parse(text))]
        while statements:
            names, node = statements.pop()
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                names = (*names, node.name)
                found.append(_function(file, names, node))
            elif isinstance(node, ast.ClassDef):
                names = (*names, node.name)
                found.append(Defined(file, ".".join(names), is_class=True))
            # Fields that can hold a definition, which an expression cannot.
            for field in ("body", "orelse", "finalbody", "handlers", "cases"):
                inner = getattr(node, field, None)
                statements += [(names, each) for each in inner] if isinstance(inner, list) else []
    return found


def _function(file: str, names: tuple[str, ...], node: ast.FunctionDef | ast.AsyncFunctionDef) -> Defined:
    positional = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
    return Defined(
        file,
        ".".join(names),
        is_class=False,
        lines=(node.end_lineno or 0) - node.lineno + 1,
        parameters=len(positional) + len(node.args.kwonlyargs) - (positional[:1] in (["self"], ["cls"])),
        is_command=any("command" in ast.unparse(each) for each in node.decorator_list),
    )


def of_the_product() -> list[Defined]:
    return [each for each in defined(*PRODUCT, *OTHERS) if not each.file.startswith(OTHERS)]


def test_a_file_fits_in_one_reading() -> None:
    long = {name for name, text in sources(*PRODUCT).items() if text.count("\n") > FILE_LINES_MAX}
    long |= {name for name, text in sources(*OTHERS).items() if text.count("\n") > TEST_LINES_MAX}
    assert sorted(long) == sorted(FILES_BEYOND)


def test_a_function_fits_on_a_screen() -> None:
    long = {str(each) for each in defined(*PRODUCT, *OTHERS) if each.lines > FUNCTION_LINES_MAX}
    assert sorted(long) == sorted(FUNCTIONS_BEYOND)


def test_a_function_takes_few_parameters() -> None:
    taking = [each for each in defined(*PRODUCT, *OTHERS) if not each.is_command]
    many = {str(each) for each in taking if each.parameters > PARAMETERS_MAX}
    assert sorted(many) == sorted(PARAMETERS_BEYOND)


def test_a_name_says_what_it_is() -> None:
    named = [(name, Path(name).stem) for name in sources(*PRODUCT)]
    named += [(each.file, each.name) for each in of_the_product()]
    assert [each for each in named if NAMES_BANNED.search(each[1])] == []


def test_what_is_defined_is_used_by_more_than_tests() -> None:
    words = Counter[str]()
    for text in sources(*PRODUCT, "benchmarks", "examples").values():
        words.update(re.findall(r"[A-Za-z_]\w*", text))
    unused = set()
    for each in of_the_product():
        # The methods of a service are found by their names in the .proto file, commands by theirs in the shell.
        if each.file in CALLED_BY_OTHERS or each.file.endswith("_service.py"):
            continue
        if not each.file.startswith("store/cli/commands/") and words[each.name] == 1:
            unused.add(str(each))
    assert sorted(each for each in unused if not each.endswith("__")) == sorted(UNUSED_BEYOND)


def _durations(nodes: list[ast.AST]) -> set[str]:
    """Return the names of differences of two times."""
    assigned = [each for each in nodes if isinstance(each, ast.Assign) and _is_duration(each.value)]
    return {name.id for each in assigned for name in each.targets if isinstance(name, ast.Name)}


def _is_duration(node: ast.AST) -> bool:
    is_difference = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub)
    return is_difference and CLOCKS.search(ast.unparse(node)) is not None


def test_a_test_changes_the_time_of_one_module_alone() -> None:
    """Not that of the process: its other threads would wait by it, and take answers that were meant for the module."""
    whole = re.compile(r"""setattr\(\s*(["']?)(\w+\.)*(time|asyncio)\b["']?[.,]""")
    assert [name for name, text in sources("tests").items() if whole.search(text)] == []


def test_no_test_asserts_how_long_something_took() -> None:
    """Neither wall time nor the processor's: both depend on the machine's other work, and clocks tick coarsely."""
    timed = set()
    for file, text in sources("tests").items():
        if CLOCKS.search(text) is not None:
            nodes = list(ast.walk(ast.parse(text)))
            durations = _durations(nodes)
            asserted = [within for each in nodes if isinstance(each, ast.Assert) for within in ast.walk(each)]
            if any(_is_duration(each) or getattr(each, "id", None) in durations for each in asserted):
                timed.add(file)
    assert sorted(timed) == sorted(TIMED_BEYOND)


def test_roundabout_sentences_only_get_fewer() -> None:
    prose = runpy.run_path(str(ROOT / "tools" / "prose.py"))
    assert set(prose["FOLDERS"]) == set(ROUNDABOUT_MAX)
    shares = {folder: prose["share"](ROOT / folder) for folder in ROUNDABOUT_MAX}
    beyond = {folder: f"{share:.1f}%" for folder, share in shares.items() if share > ROUNDABOUT_MAX[folder] + 0.05}
    assert not beyond, "tools/prose.py --list FOLDER shows them"
    slack = {
        folder: f"{share:.1f}%" for folder, share in shares.items() if share < ROUNDABOUT_MAX[folder] - ROUNDABOUT_SLACK
    }
    assert not slack, "well done: lower ROUNDABOUT_MAX to these"
