"""The findings of a verification: some problems to be shown, the others counted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cortado.proto.v1 import inspect_pb2 as pb
from cortado.store.keys.decoded import KeyNames
from cortado.store.server.inspection.state import stored_key

PROBLEMS_MAX: Final = 100
CHECKSUM, ORDER, MALFORMED, SEQUENCE = "CHECKSUM", "ORDER", "MALFORMED", "SEQUENCE"


class Problems:
    """The problems of a piece."""

    def __init__(self, names: Callable[[], KeyNames]) -> None:
        self._names = names
        self.shown: list[pb.StoredProblem] = []
        self.left_out = 0

    @property
    def is_empty(self) -> bool:
        return not self.shown

    def add(self, key: bytes, kind: str, message: str) -> None:
        if len(self.shown) == PROBLEMS_MAX:
            self.left_out += 1
        else:
            self.shown.append(pb.StoredProblem(key=stored_key(key, self._names()), kind=kind, message=message))
