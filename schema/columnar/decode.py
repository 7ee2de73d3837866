"""Avro bodies to columns, many rows at once, every byte checked.

How the package fits together::

    bodies ──▶ decode.py ──▶ columns ──▶ resolve.py (another schema's columns)
     compiler.py ─▶ nodes.py   │   ▲
          lanes.py, blocks.py  │   └──── arrow.py ◀──▶ Arrow, Spark
               skip.py         ├───────▶ values.py ──▶ Python
                               └───────▶ encode.py ──▶ bodies

A schema is compiled once to a tree of nodes. Reading walks the tree once for all rows: each node takes the positions of
its values, one lane for each row that has it, and gives a column and the positions after. A nullable field goes on with
the lanes whose branch is not null; an array's items become lanes of their own. So a chunk costs some numpy calls for
each field, whatever its rows. It is meant for chunks of 1,000 rows and more.

Nothing in a body is trusted: see :mod:`cortado.schema.columnar.lanes` for how a malformed row is set aside without
disturbing the others. A row is only marked; the reader of single documents then names its error. If any row is bad, the
good ones are read again without it, which keeps values of bad rows out of the columns.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from cortado.errors import Internal, InvalidArgument, InvalidDocument, TooLarge
from cortado.schema.columnar.column import Bools, Column, Ints
from cortado.schema.columnar.columns import expand, field_column
from cortado.schema.columnar.compiler import Compiler
from cortado.schema.columnar.lanes import Lanes
from cortado.schema.columnar.nodes import KEEP, RecordNode, Want, WantFields
from cortado.schema.documents import validate_body
from cortado.schema.limits import FREE_ITEMS_MAX, READ_BYTES_MAX
from cortado.schema.model import Record, Schema, Union
from cortado.schema.shape import records_of, recursive_names

# Five bytes can hold thousands of nulls, which take no time here; to the reader of single documents each is a step.
_FREE_ITEMS_WALKED_MAX = 1_000
_BATCH_BYTES_MAX = 2**31 - 1 - (1 << 16)


@dataclass(frozen=True, slots=True)
class DecodedRows:
    """The result of :func:`decode_rows`.

    ``columns`` are by path and have one row for each body. ``errors`` are by row number, in order; such a row is null
    in every column, even if its type is not nullable.
    """

    columns: dict[str, Column]
    errors: dict[int, InvalidDocument]


@lru_cache(maxsize=1024)
def _compile(schema: Schema) -> RecordNode:
    return Compiler(schema.record).document()


def decode_rows(
    schema: Schema,
    bodies: bytes | memoryview,
    lengths: npt.ArrayLike,
    *,
    columns: Collection[str] | None = None,
) -> DecodedRows:
    """Read the ``bodies``, which lie behind each other and are ``lengths`` bytes long, written with ``schema``.

    ``columns`` names the fields to keep, nested ones by path (``address.city``) through records and nullable records;
    None keeps all fields of the document. Every row is checked in full, even if few fields are kept. Raises
    InvalidArgument if ``lengths`` do not add up to the bodies, or a path is not in the schema.
    """
    lengths = np.asarray(lengths, np.int64)
    ends = np.cumsum(lengths)
    total = int(ends[-1]) if len(ends) else 0
    if total != len(bodies) or (len(lengths) and int(lengths.min()) < 0):
        raise InvalidArgument("lengths", f"must add up to the {len(bodies)} bytes of the bodies", str(total))
    if total > _BATCH_BYTES_MAX:
        raise InvalidArgument("bodies", f"are over the limit of {_BATCH_BYTES_MAX} bytes in one batch", str(total))
    wanted = None if columns is None else _wanted(schema.record, columns)
    for path in columns or ():
        _refuse_recursion(schema, path)
    root = _compile(schema)
    want = KEEP if wanted is None else wanted
    bad = lengths > READ_BYTES_MAX
    read, free_items = _read(root, bodies, lengths, bad, want)
    errors: dict[int, InvalidDocument] = {}
    if bad.any():
        errors = _diagnose(schema, bodies, lengths, np.flatnonzero(bad), free_items)
        good = ~bad
        still_bad = np.zeros(int(np.count_nonzero(good)), np.bool_)
        read = expand(_read(root, _only(bodies, lengths, good), lengths[good], still_bad, want)[0], good)
        if still_bad.any():
            raise Internal("rows were malformed only without those beside them")
    names = [each.name for each in schema.record.fields] if columns is None else columns
    return DecodedRows({name: field_column(read, name) for name in names}, errors)


def _read(root: RecordNode, bodies: bytes | memoryview, lengths: Ints, bad: Bools, want: Want) -> tuple[Column, Ints]:
    """Make one pass over the rows that are not ``bad``, which finds those that are: (the documents, free items by row).

    The documents hold only if no row is bad.
    """
    ends = np.cumsum(lengths)
    if root.least == 0:
        bad |= lengths != 0
        return root.blank(len(lengths)), np.zeros_like(lengths)
    # A row without bytes ends where the row before it does, so a lane for it would speak for that one.
    bad |= lengths == 0
    lanes = Lanes(bodies, ends)
    rows = slice(None) if not bad.any() else ~bad
    column, after = root.read(lanes, (ends - lengths)[rows], ends[rows], want)
    bad[rows] |= after != ends[rows]
    bad |= lanes.bad
    if column is None:
        raise Internal("a document was read and not kept")
    return column, lanes.free_items


def _only(bodies: bytes | memoryview, lengths: Ints, rows: Bools) -> bytes:
    """Return the bodies of some rows, behind each other."""
    whole = memoryview(bodies)
    ends = np.cumsum(lengths)[rows].tolist()
    return b"".join([whole[end - length : end] for end, length in zip(ends, lengths[rows].tolist(), strict=True)])


def _diagnose(
    schema: Schema, bodies: bytes | memoryview, lengths: Ints, rows: npt.NDArray[np.intp], free_items: Ints
) -> dict[int, InvalidDocument]:
    """Return the error of each of these rows, in the words of the reader of single documents."""
    whole = memoryview(bodies)
    ends = np.cumsum(lengths)
    errors = {}
    for row in rows.tolist():
        if free_items[row] > _FREE_ITEMS_WALKED_MAX:
            errors[row] = _crowded(row, int(free_items[row]))
            continue
        body = bytes(whole[int(ends[row] - lengths[row]) : int(ends[row])])
        try:
            validate_body(schema, body)
        except InvalidDocument as error:
            error.row = row
            errors[row] = error
        except TooLarge as error:
            errors[row] = InvalidDocument(error.field, error.problem, error.value, row=row)
        else:
            raise Internal(f"a row was refused for no reason: {body[:200].hex()}")
    return errors


def _crowded(row: int, free_items: int) -> InvalidDocument:
    if free_items > FREE_ITEMS_MAX:
        return InvalidDocument("", f"more than {FREE_ITEMS_MAX} values that take no bytes", row=row)
    return InvalidDocument("", f"malformed, beside {free_items} values that take no bytes", row=row)


def _wanted(record: Record, paths: Collection[str]) -> WantFields:
    """Return the paths as a tree of the fields to keep. A path and one below it keep the whole of the first."""
    wanted: dict[str, Want] = {}
    for path in paths:
        _add_wanted(record, wanted, path.split("."), path)
    return wanted


@lru_cache(1024)
def _refuse_recursion(schema: Schema, path: str) -> None:
    """Raise InvalidArgument if ``path`` leads into a record that may hold itself, which has no columns."""
    if "." not in path:
        return
    record = schema.record
    recursive = recursive_names(records_of(record))
    steps = path.split(".")
    for depth, step in enumerate(steps[:-1], 1):
        field = record.field(step)
        inner = None if field is None else field.type.nullable if isinstance(field.type, Union) else field.type
        assert isinstance(inner, Record)  # The path was followed before.
        if inner.name in recursive:
            problem = f"leads into {inner.name}, which may hold itself: name {'.'.join(steps[:depth])} as a whole"
            raise InvalidArgument(path, problem)
        record = inner


def _add_wanted(record: Record, wanted: dict[str, Want], steps: list[str], path: str) -> None:
    found = record.field(steps[0])
    if found is None:
        raise InvalidArgument(path, f"no such field in {record.name}", steps[0])
    if len(steps) == 1:
        wanted[steps[0]] = KEEP
        return
    inner = found.type.nullable if isinstance(found.type, Union) else found.type
    if not isinstance(inner, Record):
        raise InvalidArgument(path, f"{steps[0]} is not a record")
    below = wanted.get(steps[0])
    if below is None:
        below = wanted[steps[0]] = {}
    if isinstance(below, dict):
        _add_wanted(inner, below, steps[1:], path)
