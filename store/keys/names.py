"""The rules for names: one place that says which names are good, and precisely why another is not.

====================================  ==========================================================  ==========
name of                               characters                                                  length
====================================  ==========================================================  ==========
database, table, index                letters, digits, ``_`` and ``-``; begins with no ``-``      1 to 64
namespace (key-value API)             the same and ``.``; begins with no ``-`` or ``.``           1 to 64
subject                               the same as a namespace                                     1 to 200
====================================  ==========================================================  ==========

Letters and digits are ASCII, and case counts. A database's and a table's name hold no dot, so ``database.table`` always
splits in one way and is, by default, the table's subject too.
"""

from __future__ import annotations

import re
from typing import Final

from cortado.errors import InvalidArgument

NAME_LENGTH_MAX: Final = 64
SUBJECT_LENGTH_MAX: Final = 200

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*")
_DOTTED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# A wrong name may be megabytes long; an error shows only its beginning.
_SHOWN_MAX: Final = 80


def check_database(name: str, field: str = "database") -> str:
    """Return ``name`` if it may name a database. Raises InvalidArgument naming ``field``."""
    return _check(name, field, _PLAIN, "letters, digits, '_' and '-', and begin with no '-'", NAME_LENGTH_MAX)


def check_table(name: str, field: str = "table") -> str:
    """Return ``name`` if it may name a table. Raises InvalidArgument naming ``field``."""
    return check_database(name, field)


def check_index(name: str, field: str = "index") -> str:
    """Return ``name`` if it may name an index. Raises InvalidArgument naming ``field``."""
    return check_database(name, field)


def check_namespace(name: str, field: str = "namespace") -> str:
    """Return ``name`` if it may name a namespace of the key-value API. Raises InvalidArgument naming ``field``."""
    return _check(
        name, field, _DOTTED, "letters, digits, '_', '-' and '.', and begin with no '-' or '.'", NAME_LENGTH_MAX
    )


def check_subject(name: str, field: str = "subject") -> str:
    """Return ``name`` if it may name a subject. Raises InvalidArgument naming ``field``."""
    return _check(
        name, field, _DOTTED, "letters, digits, '_', '-' and '.', and begin with no '-' or '.'", SUBJECT_LENGTH_MAX
    )


def split_table_name(full_name: str, field: str = "table") -> tuple[str, str]:
    """Database and table of ``database.table``. Raises InvalidArgument naming ``field``."""
    _check_text(full_name, field)
    database, dot, table = full_name.partition(".")
    if not dot:
        raise InvalidArgument(field, "must look like database.table", shown(full_name))
    return check_database(database, field), check_table(table, field)


def shown(text: str) -> str:
    """Return ``text`` quoted for an error's message, and cut if it is long."""
    return repr(text) if len(text) <= _SHOWN_MAX else f"{text[:_SHOWN_MAX]!r}... ({len(text)} characters)"


def _check_text(name: object, field: str) -> None:
    if not isinstance(name, str):
        raise InvalidArgument(field, "must be text", type(name).__name__)


def _check(name: str, field: str, allowed: re.Pattern[str], rule: str, length_max: int) -> str:
    _check_text(name, field)
    if not name:
        raise InvalidArgument(field, "must not be empty")
    if len(name) > length_max:
        raise InvalidArgument(field, f"must have at most {length_max} characters", shown(name))
    if allowed.fullmatch(name) is None:
        raise InvalidArgument(field, f"must have only {rule}", shown(name))
    return name
