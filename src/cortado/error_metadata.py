"""Errors as flat text, and back: the shape of ``google.rpc.ErrorInfo``. One mapping, for the server and the client."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping

from cortado.errors import CortadoError, Internal


def _all_kinds(root: type[CortadoError]) -> list[type[CortadoError]]:
    return [root, *(kind for child in root.__subclasses__() for kind in _all_kinds(child))]


_KIND_OF_REASON = {kind.reason: kind for kind in _all_kinds(CortadoError) if "reason" in vars(kind)}


def to_metadata(error: CortadoError) -> dict[str, str]:
    """The error's fields as flat text, the shape of ``google.rpc.ErrorInfo.metadata``. What was not said is left out:
    None, and empty text where a field may be without."""
    unsaid = {field.name for field in dataclasses.fields(error) if field.default == ""}
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in error.fields().items()
        if value is not None and not (value == "" and name in unsaid)
    }


def from_metadata(reason: str, metadata: Mapping[str, str]) -> CortadoError:
    """The error that :func:`to_metadata` described. A reason of a newer server becomes :class:`Internal`."""
    kind = _KIND_OF_REASON.get(reason)
    if kind is None:
        return Internal(problem=f"{reason}: {dict(metadata)}")
    known = {field.name: field for field in dataclasses.fields(kind)}
    values = {
        name: text if known[name].type == "str" else json.loads(text)
        for name, text in metadata.items()
        if name in known
    }
    try:
        return kind(**values)
    except TypeError:
        return Internal(problem=f"{reason}: {dict(metadata)}")
