"""What keeps the code small enough to read: files, functions and their parameters have bounds, and all of it is used.

A bound is here, and not in a style guide, so that going past it is a decision: the exceptions are listed with their
reason, and one that is no longer needed must go.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
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
    "raft/group.py": "to be parted: the state machine, the window of the log, members and transfer",
    "store/node/node.py": "to be parted: the process, and the replica of one group",
    "store/node/turns.py": "to be parted: the driver, leadership, pacing and waiting",
    "tests/unit/raft/test_raft_rules.py": "one directed scenario for each rule of the log",
    "tests/support/raft_world.py": "the world of those scenarios",
}
FUNCTIONS_BEYOND: Final = {
    "store/node/node.py Node.__init__": "parted with its file",
    "store/node/turns.py Turns.__init__": "parted with its file",
}
PARAMETERS_BEYOND: Final = {
    "store/node/node.py Node.__init__": "parted with its file",
    "store/node/turns.py Turns.__init__": "parted with its file",
    "store/node/repair/repairs.py Repairs.__init__": "parted with the replica",
    "store/node/snapshots/fetch.py Fetch.__init__": "parted with the replica",
    "store/node/snapshots/snapshots.py Snapshots.__init__": "parted with the replica",
    "store/node/snapshots/source.py SnapshotSource.__init__": "parted with the replica",
    "store/node/snapshots/target.py SnapshotTarget.__init__": "parted with the replica",
}
NAMES_BANNED: Final = re.compile(r"(^|_)(utils?|helpers?|misc|manager|data2)(_|$)|Manager|Helper|Utils?$")

# A method that is found by its name, not by a call in our code.
CALLED_BY_OTHERS: Final = {
    "raft/engine.py": "PySyncObj",
    "raft/journal.py": "PySyncObj",
    "store/observe/logs.py": "logging",
    "store/cli/input.py": "io",
    "store/cli/options.py": "click",
    "store/transfer/files.py": "pyarrow",
    "spark_connector/source.py": "Spark",
}
UNUSED_BEYOND: Final = {
    "store/peers/transport.py PeerTransport.link_to": "tests tell one stream from the next by it",
}


@cache
def sources(*folders: str) -> dict[str, str]:
    """The text of each file that people wrote, by its path from the root."""
    found = {}
    for folder in folders:
        for path in sorted((ROOT / folder).rglob("*.py")):
            is_linked = any(parent.is_symlink() for parent in (path, *path.parents) if parent != ROOT)
            if "_pb2" not in path.name and not is_linked:
                found[str(path.relative_to(ROOT))] = path.read_text()
    return found


def functions(text: str) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Each function and method of a file, under the names that lead to it."""

    def walk(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield ".".join((*names, child.name)), child
                yield from walk(child, (*names, child.name))
            else:
                yield from walk(child, (*names, child.name) if isinstance(child, ast.ClassDef) else names)

    return walk(ast.parse(text), ())


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many it takes, without the object that it is a method of."""
    positional = [each.arg for each in (*function.args.posonlyargs, *function.args.args)]
    return len(positional) + len(function.args.kwonlyargs) - (positional[:1] in (["self"], ["cls"]))


def is_command(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether its parameters are the options of a command, which ``cortado COMMAND --help`` lists."""
    return any("command" in ast.unparse(each) for each in function.decorator_list)


def test_a_file_fits_in_one_reading() -> None:
    long = {name for name, text in sources(*PRODUCT).items() if text.count("\n") > FILE_LINES_MAX}
    long |= {name for name, text in sources(*OTHERS).items() if text.count("\n") > TEST_LINES_MAX}
    assert sorted(long) == sorted(FILES_BEYOND)


def test_a_function_fits_on_a_screen() -> None:
    long = {
        f"{name} {path}"
        for name, text in sources(*PRODUCT, *OTHERS).items()
        for path, function in functions(text)
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    }
    assert sorted(long) == sorted(FUNCTIONS_BEYOND)


def test_a_function_takes_few_parameters() -> None:
    many = {
        f"{name} {path}"
        for name, text in sources(*PRODUCT, *OTHERS).items()
        for path, function in functions(text)
        if parameters(function) > PARAMETERS_MAX and not is_command(function)
    }
    assert sorted(many) == sorted(PARAMETERS_BEYOND)


def test_a_name_says_what_it_is() -> None:
    named = [(name, Path(name).stem) for name in sources(*PRODUCT)]
    for name, text in sources(*PRODUCT).items():
        named += [
            (name, node.name)
            for node in ast.walk(ast.parse(text))
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        ]
    assert [each for each in named if NAMES_BANNED.search(each[1])] == []


def test_what_is_defined_is_used_by_more_than_tests() -> None:
    words = Counter[str]()
    for text in sources(*PRODUCT, "benchmarks", "examples").values():
        words.update(re.findall(r"[A-Za-z_]\w*", text))
    unused = set()
    for name, text in sources(*PRODUCT).items():
        # The methods of a service are found by their names in the .proto file, commands by theirs in the shell.
        if name in CALLED_BY_OTHERS or name.endswith("_service.py") or name.startswith("store/cli/commands/"):
            continue
        unused |= {f"{name} {path}" for path, function in functions(text) if words[function.name] == 1}
        unused |= {
            f"{name} {node.name}"
            for node in ast.parse(text).body
            if isinstance(node, ast.ClassDef) and words[node.name] == 1
        }
    assert sorted(each for each in unused if not each.endswith("__")) == sorted(UNUSED_BEYOND)
