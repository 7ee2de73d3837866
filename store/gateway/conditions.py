"""Etags and conditions, between HTTP's headers and the client's arguments.

==========================  ==================================  ===========================================
header                      of a write                          of a read
==========================  ==================================  ===========================================
``If-Match: "0.17.2"``      only if that is the newest version
``If-Match: *``             only if there is one
``If-None-Match: *``        only if there is none               304 if there is one
``If-None-Match: "0.17.2"``                                     304 if that is the newest version
==========================  ==================================  ===========================================

An etag is strong: the commit's timestamp in quotes. Others' entity tags (RFC 9110, section 8.8.3) hold any bytes but
quotes, spaces and controls: commas, too, and bytes above 0x7F. Both headers are lists of them, or ``*``; empty elements
of a list count for nothing. A write takes one tag, since the cluster compares with one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, NamedTuple

from starlette.datastructures import Headers

from cortado.errors import InvalidArgument
from cortado.store.keys.names import shown

_ELEMENT: Final = re.compile(r'[ \t]*(?:(W/)?"([!#-~\x80-\xff]*)")?[ \t]*(,|$)')
_ONE: Final = 'must be one strong etag in quotes, such as "0.1763643600000.2", or *'


class _Tag(NamedTuple):
    is_weak: bool
    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """At most one of them holds something."""

    if_absent: bool = False
    if_present: bool = False
    if_etag: str | None = None


def quoted(etag: str) -> str:
    """Return an etag as a header has it."""
    return f'"{etag}"'


def condition_of(headers: Headers) -> Condition:
    """Return the condition of a write. Raises InvalidArgument naming the header."""
    match, none_match = _given(headers, "If-Match"), _given(headers, "If-None-Match")
    if match is not None and none_match is not None:
        raise InvalidArgument("If-None-Match", "must not be given together with If-Match", shown(none_match))
    if none_match is not None:
        if none_match != "*":
            raise InvalidArgument("If-None-Match", "must be * on a PUT", shown(none_match))
        return Condition(if_absent=True)
    if match is None:
        return Condition()
    if match == "*":
        return Condition(if_present=True)
    tags = _tags(match)
    if tags is None or len(tags) != 1 or tags[0].is_weak or not tags[0].text:
        raise InvalidArgument("If-Match", _ONE, shown(match))
    return Condition(if_etag=tags[0].text)


def is_unchanged(headers: Headers, etag: str) -> bool:
    """Return whether the reader of a read has this version already. Raises InvalidArgument."""
    given = _given(headers, "If-None-Match")
    if given is None:
        return False
    if given == "*":
        return True
    tags = _tags(given)
    if tags is None:
        raise InvalidArgument("If-None-Match", "must be etags in quotes, with commas between them, or *", shown(given))
    return any(each.text == etag for each in tags)


def _given(headers: Headers, name: str) -> str | None:
    """Return all that was given of the header, as one list."""
    given = headers.getlist(name)
    return ", ".join(given).strip() if given else None


def _tags(given: str) -> list[_Tag] | None:
    """Return the entity tags of a list; None for text that is no list of them."""
    tags: list[_Tag] = []
    place = 0
    while (found := _ELEMENT.match(given, place)) is not None:
        if found[2] is not None:
            tags.append(_Tag(found[1] is not None, found[2]))
        if not found[3]:
            return tags
        place = found.end()
    return None
