"""Removes from logs all text that must not leave a host: keys, values, documents, credentials.

A log line is prose with names and numbers in it. Known names (nodes, addresses, paths of ours) stay. Text in quotes,
long runs of hexadecimal or base64, and text after a word such as ``password`` go. In a JSON log, the fields that are
known to be harmless stay, and all other text goes. Losing a helpful word is better than keeping one that should not
have been seen.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

GONE: Final = "[removed]"
LINE_LENGTH_MAX: Final = 2_000

_PEM_BEGIN: Final = re.compile(r"-----BEGIN ")
_PEM_END: Final = re.compile(r"-----END ")
_QUOTED: Final = re.compile(r"""(b?)('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")""")
_BRACES: Final = re.compile(r"\{.*\}")
_NAMED: Final = re.compile(
    r"(?i)\b((?:[\w-]*(?:password|passwd|secret|token|credential|authorization|api[_-]?key|cookie))"
    r"|bearer|basic|value|document|body|payload)(\s*[=:]\s*|\s+)(?:(?:bearer|basic)\s+)?\S+"
)
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ID: Final = re.compile(r"[0-9a-f-]{1,64}")
_TOKEN: Final = re.compile(r"ctd_[\w-]*|eyJ[\w-]*\.[\w.-]*")
"""A token of ours or a JSON web token, by its beginning, anywhere in the text."""
_RUN: Final = re.compile(r"[A-Za-z0-9+_-]{12,}={0,2}")
"""A run with any neighbour: a slash, a dot and a letter hide no secret."""
_RUN_LENGTH_MAX: Final = 31
_HEX: Final = re.compile(r"(?![0-9]*(?![0-9a-fA-F]))[0-9a-fA-F]{12,}")
_WORD: Final = r"(?:[A-Z]?[a-z]+|[A-Z]+)[0-9]{0,2}"
_WORDS: Final = re.compile(rf"_*{_WORD}(?:[_-]+(?:{_WORD}|[0-9]{{1,4}}))+")
_WITH_SLASHES: Final = re.compile(r"[A-Za-z0-9+/_-]{32,}={0,2}")
"""A path, or encoded bytes."""
_ENCODED_LENGTH_MIN: Final = 12
_USERINFO: Final = re.compile(r"(\w+://)[^/\s@]+@")
_JSON_TEXTS: Final = frozenset(
    {"time", "ts", "timestamp", "level", "logger", "node", "node_id", "method", "code", "peer"}
)
_JSON_IDS: Final = frozenset({"cluster_id", "request_id", "trace_id", "span_id"})
_JSON_SECRET: Final = frozenset({"key", "keys", "value", "values", "document", "documents", "body", "payload"})
_JSON_PROSE: Final = frozenset({"message", "msg", "event", "error", "problem", "exception"})


def redacted_lines(lines: Iterable[str], known: Collection[str] = ()) -> Iterator[str]:
    """Yield each line without secrets; ``known`` are names that may stay in quotes."""
    in_pem = False
    for line in lines:
        if _PEM_BEGIN.search(line):
            in_pem = True
            yield "[a PEM block was removed]"
        if not in_pem:
            yield redacted(line, known)
        elif _PEM_END.search(line):
            in_pem = False


def redacted(line: str, known: Collection[str] = ()) -> str:
    """Return one line without secrets."""
    if line.lstrip().startswith("{"):
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if isinstance(record, dict):
            return json.dumps({name: _field(name, value, known) for name, value in record.items()}, ensure_ascii=False)
    return _prose(line, known)[:LINE_LENGTH_MAX]


def _field(name: str, value: Any, known: Collection[str]) -> Any:
    if name in _JSON_SECRET:
        return GONE
    if isinstance(value, bool | int | float) or value is None:
        return value
    if isinstance(value, dict) and all(isinstance(each, bool | int | float) for each in value.values()):
        return value
    if isinstance(value, str) and name in _JSON_IDS and _ID.fullmatch(value):
        return value
    if isinstance(value, str) and name in _JSON_TEXTS:
        return _without_runs(value)
    if isinstance(value, str) and (name in _JSON_PROSE or value in known):
        return _prose(value, known)
    return GONE


def _prose(line: str, known: Collection[str]) -> str:
    def quoted(match: re.Match[str]) -> str:
        return match[0] if not match[1] and match[2][1:-1] in known else GONE

    line = _QUOTED.sub(quoted, line)
    line = _BRACES.sub(GONE, line)
    line = _USERINFO.sub(rf"\1{GONE}@", line)
    line = _NAMED.sub(lambda match: f"{match[1]}{match[2]}{GONE}", line)
    return _without_runs(line)


def _without_runs(text: str) -> str:
    """Without tokens, and without runs of characters that are no word, no number in a name and no UUID."""
    text = _TOKEN.sub(GONE, text)
    text = _WITH_SLASHES.sub(lambda match: GONE if any(map(_is_encoded, match[0].split("/"))) else match[0], text)
    return _RUN.sub(_unless_harmless, text)


def _unless_harmless(match: re.Match[str]) -> str:
    run, text = match[0], match.string
    if _UUID.fullmatch(run):
        return run
    if run.isdigit():
        # A timestamp's, or the name of a file; alone it may be a key.
        is_in_name = text[: match.start()][-1:] in ("/", ".") or text[match.end() :][:1] == "/"
        return run if is_in_name else GONE
    is_long = len(run) > _RUN_LENGTH_MAX and not _WORDS.fullmatch(run)
    return GONE if is_long or _HEX.search(run) else run


def _is_encoded(name: str) -> bool:
    """Return whether capitals, small letters and digits are in a long name, as in encoded bytes and hardly in a
    path."""
    is_mixed = name != name.lower() and name != name.upper() and any(map(str.isdigit, name))
    return is_mixed and len(name) >= _ENCODED_LENGTH_MIN
