"""JSON of people and scripts, read strictly: what Python's reader would silently change is refused.

Python takes the last of two equal keys, and ``NaN``, which is no JSON; both are mistakes that nobody would find again.
Integers are exact however long, so that 64 bits survive.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from cortado.errors import InvalidArgument

_SHOWN_MAX: Final = 60


def parse_json(text: str, what: str) -> Any:
    """The value of ``text``. Raises InvalidArgument naming ``what``, with the place of the mistake."""
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        # A row of many is a line by itself, and has another number.
        if "\n" in text:
            place = f"line {error.lineno}, {place}"
        raise InvalidArgument(what, f"must be JSON: {error.msg} at {place}", _short(text)) from None
    except RecursionError:
        raise InvalidArgument(what, "must be JSON: it is nested too deeply") from None
    except ValueError as error:
        # Python's own words are about its own setting.
        problem = "an integer has thousands of digits" if "set_int_max_str_digits" in str(error) else str(error)
        raise InvalidArgument(what, f"must be JSON: {problem}", _short(text)) from None


def json_line(value: Any) -> str:
    """``value`` as JSON on one line, without its end. Characters stand as they are."""
    return _ENCODER.encode(value)


def _refuse_constant(name: str) -> Any:
    raise ValueError(f'{name} is no JSON number (write it as text: "{name}")')


def _without_duplicates(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice!r} stands there twice")
    return value


def _short(text: str) -> str:
    return repr(text) if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]!r}..."


# Made once: json.loads and json.dumps make one anew for every call that has options.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(", ", ": "), allow_nan=False)
