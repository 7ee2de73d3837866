"""Assignments, as they are written on a command line. Keys are read by :mod:`cortado.store.transfer.key_text`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cortado.errors import InvalidArgument
from cortado.schema.json_text import parse_json


def parse_assignments(texts: Sequence[str]) -> dict[str, Any]:
    """``path=json`` of ``--set``, each path once. Raises InvalidArgument."""
    changes: dict[str, Any] = {}
    for text in texts:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise InvalidArgument("--set", "must look like field=json", repr(text))
        if path in changes:
            raise InvalidArgument("--set", "must name a field once", path)
        try:
            changes[path] = parse_json(value, f"--set {path}")
        except InvalidArgument as error:
            hint = f"""{error.problem} (text needs quotes: --set '{path}="..."')"""
            raise InvalidArgument(error.field, hint, error.value) from None
    return changes
