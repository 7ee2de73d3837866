r"""JSON as text: read strictly, and written so that no terminal obeys it.

Python's reader takes the last of two equal keys, and ``NaN``, which is no JSON; in a text to be kept, both are mistakes
that no reader would find again. Integers are exact however long, so that 64 bits survive.

Written text keeps every character but those that a terminal acts on: DEL and C1 controls (U+009B begins an escape
sequence), marks that turn the direction of text, line separators, invisible tags, and halves of characters. Those are
``\u`` escapes. Every JSON reader gives them back, so nothing is lost, and the text is the same in a pipe, in a file and
on a terminal: a file is looked at on a terminal later.
"""

from __future__ import annotations

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.schema.json_bounds import TEXT_DEPTH_MAX, is_too_deep

_SHOWN_MAX: Final = 60
BYTE_ORDER_MARK: Final = "\ufeff"
_OTHER_MARKS: Final = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_OBEYED: Final = re.compile(
    "[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)


def parse_json(text: str, what: str, refused: type[InvalidArgument] = InvalidArgument) -> Any:
    """Return the value of ``text``. Raises ``refused`` naming ``what``, with the place of the mistake."""
    if text.startswith(BYTE_ORDER_MARK):
        problem = "must be JSON without a byte order mark (in UTF-8 the bytes EF BB BF): remove it from the beginning"
        raise refused(what, problem, shown_text(text))
    if is_too_deep(text.encode(errors="surrogatepass")):
        problem = f"must be JSON of at most {TEXT_DEPTH_MAX} objects and arrays in one another"
        raise refused(what, problem, shown_text(text))
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        place = f"column {error.colno}"
        # A row of many is a line by itself, and has another number.
        if "\n" in text:
            place = f"line {error.lineno}, {place}"
        raise refused(what, f"must be JSON: {error.msg} at {place}", shown_text(text)) from None
    except ValueError as error:
        # Python's own words are about its own setting.
        problem = "an integer has thousands of digits" if "set_int_max_str_digits" in str(error) else str(error)
        raise refused(what, f"must be JSON: {problem}", shown_text(text)) from None


def parse_json_bytes(encoded: bytes, what: str, refused: type[InvalidArgument] = InvalidArgument) -> Any:
    """Parse a text in UTF-8 as :func:`parse_json` does."""
    try:
        text = encoded.decode()
    except UnicodeDecodeError as error:
        raise refused(what, not_utf8(error)) from None
    return parse_json(text, what, refused)


def not_utf8(error: UnicodeDecodeError) -> str:
    """Return the problem of bytes that are no UTF-8, for a message."""
    if error.object.startswith(_OTHER_MARKS):
        return f"must be UTF-8: it begins with a byte order mark of UTF-16 ({error.object[:2].hex(' ').upper()})"
    return f"must be UTF-8: {error.reason} at byte {error.start}"


def json_text(value: Any, *, indent: int | None = None, default: Callable[[Any], Any] | None = None) -> str:
    """``value`` as JSON, on one line unless there is an ``indent``; ``default`` gives what JSON has no form for."""
    if indent is None and default is None:
        text = _ENCODER.encode(value)
    else:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent, default=default)
    if text.isascii() and "\x7f" not in text:
        return text
    return _OBEYED.sub(_escape, text)


def shown(value: Any, width: int = _SHOWN_MAX) -> str:
    """Return a JSON value as a short text for a message."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= width else text[: width - 3] + "..."


def shown_text(text: str) -> str:
    """Return a text for a message, in quotes, and cut off if it is long."""
    return repr(text) if len(text) <= _SHOWN_MAX else f"{text[: _SHOWN_MAX - 3]!r}..."


def _escape(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def _without_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the key {shown_text(twice)} stands there twice")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f'{name} is no JSON number (write it as text: "{name}")')


# Made once: json.loads and json.dumps make one anew for every call that has options.
_DECODER: Final = json.JSONDecoder(parse_constant=_refuse_constant, object_pairs_hook=_without_duplicates)
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)
