"""Names that other sources have for our options: errors name an option as it was given."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Final, TypeVar

from cortado.errors import InvalidArgument

ALIASES: Final = {
    "timestampAsOf": "at",
    "numPartitions": "partitions",
    "batchsize": "chunkRows",
    "badRecordsPath": "badRowsPath",
}
"""Names that Delta, Spark's JDBC source and its files have for the same."""
_LOWER: Final = {alias.lower(): name for alias, name in ALIASES.items()}

Parsed = TypeVar("Parsed")


def as_given(parse: Callable[[Mapping[str, str]], Parsed]) -> Callable[[Mapping[str, str]], Parsed]:
    """Return ``parse``, whose InvalidArgument names an option by the alias under which ``options`` has it."""

    @wraps(parse)
    def parsed(options: Mapping[str, str]) -> Parsed:
        try:
            return parse(options)
        except InvalidArgument as refused:
            given = {f"option {_LOWER[key.lower()]}": f"option {key}" for key in options if key.lower() in _LOWER}
            refused.field = given.get(refused.field, refused.field)
            raise

    return parsed
