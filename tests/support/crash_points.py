"""Every write and every sync of both stores, by name: found in their source, and struck on the real files.

A *point* is a call that changes the disk, or makes a change durable, or a call in the same file that leads to one:
``FolderFiles.create > _sync_folder``, ``_sync_folder > fsync``. :func:`points_in_source` reads them from the code, so
that a new one is noticed; :class:`Striking` puts itself before them in the running process, and counts them.

LMDB writes and syncs in C: to it, opening, creating a tree and committing are points, and nothing in between.
"""

from __future__ import annotations

import ast
import errno
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

import lmdb
import pytest

ROOT: Final = Path(__file__).parents[2]
STORES: Final = ("store/log_files", "store/engine", "store/server/stores.py")
_OF_FILES: Final = frozenset(
    {"chmod", "fcntl", "fdatasync", "flush", "fsync", "ftruncate", "link", "mkdir", "open", "posix_fallocate", "pwrite"}
    | {"pwritev", "rename", "replace", "rmdir", "rmtree", "symlink_to", "touch", "truncate", "unlink", "write"}
    | {"write_bytes", "write_text"}
)
_OF_LMDB: Final = frozenset({"commit", "open_db"})
_PATCHED: Final = (
    "chmod",
    "fdatasync",
    "fsync",
    "ftruncate",
    "mkdir",
    "posix_fallocate",
    "pwrite",
    "replace",
    "unlink",
)
_SYNCS: Final = frozenset({"fdatasync", "fsync"})


class Killed(BaseException):
    """The process is gone: nothing that it does from here on reaches the disk."""


class Fault(Enum):
    """The event at a point, before its call. In a write without room, half was done."""

    KILL = "killed"
    FULL = "no room, once"
    BROKEN = "an input/output error, once"


# --- in the source -------------------------------------------------------------------------------------------------


def points_in_source() -> set[str]:
    """Return all steps that lead to a write or a sync in the stores' code."""
    paths = [
        path for each in STORES for path in ([ROOT / each] if each.endswith(".py") else (ROOT / each).glob("*.py"))
    ]
    return {point for path in paths if path.name != "memory.py" for point in _points_of(path)}


def _points_of(path: Path) -> set[str]:
    calls = _Calls()
    calls.visit(ast.parse(path.read_text()))
    writing, found = set[str](), {(caller, callee) for caller, callee in calls.made if callee in _OF_FILES | _OF_LMDB}
    while True:
        found |= {(caller, callee) for caller, callee in calls.local if callee in writing}
        now = {caller.rpartition(".")[2] for caller, _ in found}
        if now == writing:
            return {f"{caller} > {callee}" for caller, callee in found}
        writing = now


class _Calls(ast.NodeVisitor):
    """The disk operations of each function, and the functions and methods of its file that it calls."""

    def __init__(self) -> None:
        self.made: set[tuple[str, str]] = set()
        self.local: set[tuple[str, str]] = set()
        self._within: list[str] = []

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._visit_in(node, node.name + ".")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self._visit_in(node, node.name + ".<locals>.")

    def _visit_in(self, node: ast.AST, prefix: str) -> None:
        self._within.append(prefix)
        self.generic_visit(node)
        self._within.pop()

    def visit_Call(self, node: ast.Call) -> None:
        caller, function = "".join(self._within).removesuffix(".<locals>."), node.func
        point = _point(node)
        if point:
            self.made.add((caller, point))
        elif isinstance(function, ast.Name):
            self.local.add((caller, function.id))
        elif isinstance(function, ast.Attribute) and ast.unparse(function.value) in ("self", "cls"):
            self.local.add((caller, function.attr))
        self.generic_visit(node)


def _point(node: ast.Call) -> str:
    if not isinstance(node.func, ast.Attribute):
        return "open" if ast.unparse(node.func) == "open_regular" and "O_CREAT" in ast.unparse(node) else ""
    name, of = node.func.attr, ast.unparse(node.func.value)
    if {"readonly=True", "create=False"} & {ast.unparse(each) for each in node.keywords}:
        return ""
    if name not in {"open", "replace", "write"}:
        return name if name in _OF_FILES | _OF_LMDB else ""
    is_write = name == "write" and (of == "os" or len(node.args) == 1)
    is_rename = name == "replace" and len(node.args) == 1
    is_creation = name == "open" and (of == "lmdb" or (of == "os" and "O_CREAT" in ast.unparse(node)))
    return name if is_write or is_rename or is_creation else ""


# --- in the process ------------------------------------------------------------------------------------------------


@dataclass
class Striking:
    """``fault`` strikes before the call with number ``at``. ``passed`` has how each call was reached, ``points`` all
    the points that make up each."""

    at: int = -1
    fault: Fault = Fault.KILL
    passed: list[str] = field(default_factory=list)
    points: set[str] = field(default_factory=set)
    is_off: bool = False
    descriptors: set[int] = field(default_factory=set)
    environments: list[Any] = field(default_factory=list)

    def end(self) -> None:
        """End the process, and close its open files. Later calls belong to another process, and nothing strikes."""
        self.is_off = True
        for environment in self.environments:
            environment.close()
        while self.descriptors:
            os.close(min(self.descriptors))

    def point(self, call: str) -> str:
        """Pass a point before a call of the stores. Returns the fault that is to happen there, in its words."""
        functions = _functions()
        if not functions:
            return ""
        steps = [each.rpartition(".")[2] for each in functions[1:]] + [call]
        self.points |= {f"{caller} > {callee}" for caller, callee in zip(functions, steps, strict=True)}
        if self.is_off:
            return ""
        chain = " > ".join([functions[0], *steps])
        self.passed.append(chain)
        number = len(self.passed) - 1
        if self.fault is Fault.KILL and 0 <= self.at <= number:
            raise Killed(chain)
        return chain if number == self.at else ""

    def os_call(self, call: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def struck(*arguments: Any, **named: Any) -> Any:
            is_creation = call != "open" or arguments[1] & os.O_CREAT
            where = self.point(call) if is_creation else ""
            if where:
                if self.fault is Fault.FULL and call == "pwrite":
                    descriptor, data, offset = arguments
                    function(descriptor, memoryview(data)[: len(data) // 2], offset)
                code = errno.ENOSPC if self.fault is Fault.FULL else errno.EIO
                raise OSError(code, f"{os.strerror(code)}, at {where}")
            # The writes of a killed process are there without a sync, and no test here loses power.
            done = None if call in _SYNCS else function(*arguments, **named)
            if call == "open":
                self.descriptors.add(done)
            return done

        return struck

    def lmdb_call(self, call: str) -> None:
        where = self.point(call)
        if where:
            code = errno.ENOSPC if self.fault is Fault.FULL else errno.EIO
            error = lmdb.Error(f"{os.strerror(code)}, at {where}")
            error.code = code
            raise error


def _functions() -> list[str]:
    """Return the functions of one file of the stores that lead to the present call, outermost first."""
    frame, names, file = sys._getframe(2), list[str](), ""
    while frame.f_back is not None:
        frame = frame.f_back
        path = frame.f_code.co_filename
        if file and path != file:
            break
        if any(f"/{each}" in path for each in STORES):
            file = path
            if not frame.f_code.co_name.startswith("<"):
                names.append(frame.f_code.co_qualname)
    return names[::-1]


class _Environment:
    """LMDB's environment, which reports its writes."""

    def __init__(self, real: Any, striking: Striking) -> None:
        self._real = real
        self._striking = striking
        striking.environments.append(real)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def open_db(self, *arguments: Any, **named: Any) -> Any:
        if named.get("create", True):
            self._striking.lmdb_call("open_db")
        return self._real.open_db(*arguments, **named)

    def begin(self, *arguments: Any, **named: Any) -> Any:
        transaction = self._real.begin(*arguments, **named)
        return _Transaction(transaction, self._striking) if named.get("write") else transaction


class _Transaction:
    def __init__(self, real: Any, striking: Striking) -> None:
        self._real = real
        self._striking = striking

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def commit(self) -> None:
        try:
            self._striking.lmdb_call("commit")
        except BaseException:
            self._real.abort()
            raise
        self._real.commit()


class _Text:
    """A text file that is buffered: writes reach the disk when it is flushed."""

    def __init__(self, real: Any, striking: Striking) -> None:
        self._real = real
        self._striking = striking

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __enter__(self) -> _Text:
        return self

    def __exit__(self, *_: object) -> None:
        self._striking.descriptors.discard(self._real.fileno())
        self._real.close()

    def write(self, text: str) -> None:
        self._striking.os_call("write", self._real.write)(text)

    def flush(self) -> None:
        self._striking.os_call("flush", self._real.flush)()


@contextmanager
def struck(striking: Striking) -> Iterator[Striking]:
    """Make the stores of this process pass their points within the block."""
    with pytest.MonkeyPatch.context() as patch:
        real_open, real_close, real_lmdb_open, real_fdopen = os.open, os.close, lmdb.open, os.fdopen

        def close(descriptor: int) -> None:
            striking.descriptors.discard(descriptor)
            real_close(descriptor)

        patch.setattr(os, "close", close)
        for call in _PATCHED:
            patch.setattr(os, call, striking.os_call(call, getattr(os, call)))
        patch.setattr(os, "open", striking.os_call("open", real_open))
        patch.setattr(os, "fdopen", lambda *given, **named: _Text(real_fdopen(*given, **named), striking))

        def open_environment(*arguments: Any, **named: Any) -> _Environment:
            if not named.get("readonly"):
                striking.lmdb_call("open")
            return _Environment(real_lmdb_open(*arguments, **named), striking)

        patch.setattr(lmdb, "open", open_environment)
        yield striking
