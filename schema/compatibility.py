"""Compatibility of a new version with earlier ones: the seven modes over the rules of
:mod:`cortado.schema.reader_writer`.

======================  =================================================================================
NONE                    any version may follow
BACKWARD                the new version reads what the last one wrote
FORWARD                 the last version reads what the new one writes
FULL                    both
..._TRANSITIVE          the same against every earlier version, not the last alone
======================  =================================================================================

A table keeps rows of every version that ever wrote, and reads them with the newest: hence the default,
BACKWARD_TRANSITIVE.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from cortado.schema.model import AvroType, Enum, Fixed, Record, Schema
from cortado.schema.names import branch_name, simple_name
from cortado.schema.reader_writer import Incompatibility, IncompatibilityKind, ReaderWriter

__all__ = [
    "DEFAULT_MODE",
    "CompatibilityMode",
    "Incompatibility",
    "IncompatibilityKind",
    "check_against",
    "check_reader_writer",
]


class CompatibilityMode(StrEnum):
    """The condition that a subject sets for a new version."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def reads_older(self) -> bool:
        """Return whether the new version must read what earlier ones wrote."""
        return self.name.startswith(("BACKWARD", "FULL"))

    @property
    def read_by_older(self) -> bool:
        """Return whether earlier versions must read the new one's documents."""
        return self.name.startswith(("FORWARD", "FULL"))

    @property
    def transitive(self) -> bool:
        """Return whether all earlier versions count, not the last alone."""
        return self.name.endswith("_TRANSITIVE")


DEFAULT_MODE: Final = CompatibilityMode.BACKWARD_TRANSITIVE

FOUND_MAX: Final = 10_000
"""After this many reasons no older version is compared: the new one is refused in any case, and readers need no
more."""


def check_reader_writer(reader: Schema, writer: Schema) -> list[Incompatibility]:
    """Return every reason why ``reader`` cannot read all documents of ``writer``. Empty: it can read all of them.

    Raises InvalidSchema for a pair that would take too long to compare.
    """
    return list(ReaderWriter().report(reader.root, writer.root, _root_path(reader.root)))


def check_against(
    new: Schema, versions: Sequence[tuple[int, Schema]], mode: CompatibilityMode
) -> list[Incompatibility]:
    """Return every reason why ``new`` may not follow ``versions`` (number and schema, oldest first), the newest's
    first.

    Each carries the ``version`` that it was found with; in the modes that look both ways, its message says which way.
    """
    if not versions or mode is CompatibilityMode.NONE:
        return []
    against = reversed(versions) if mode.transitive else versions[-1:]
    found: list[Incompatibility] = []
    for number, old in against:
        found += _check_version(new, number, old, mode)
        if len(found) > FOUND_MAX:
            break
    return found


def _check_version(new: Schema, number: int, old: Schema, mode: CompatibilityMode) -> Iterator[Incompatibility]:
    if new.fingerprint == old.fingerprint:
        return
    both = mode.reads_older and mode.read_by_older
    if mode.reads_older:
        way = "reading older documents: " if both else ""
        for found in check_reader_writer(new, old):
            yield replace(found, version=number, message=way + found.message)
    if mode.read_by_older:
        way = "older readers of new documents: " if both else ""
        for found in check_reader_writer(old, new):
            yield replace(found, version=number, message=way + found.message)


def _root_path(root: AvroType) -> str:
    return simple_name(root.name) if isinstance(root, Record | Enum | Fixed) else branch_name(root)
