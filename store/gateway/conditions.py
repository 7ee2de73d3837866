"""Etags and conditions, between HTTP's headers and the client's arguments.

==========================  ==================================  ===========================================
header                      of a write                          of a read
==========================  ==================================  ===========================================
``If-Match: "0.17.2"``      only if that is the newest version
``If-Match: *``             only if there is one
``If-None-Match: *``        only if there is none               304 where there is one
``If-None-Match: "0.17.2"``                                     304 where that is the newest version
==========================  ==================================  ===========================================

An etag is strong: the commit's timestamp in quotes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers

from cortado.errors import InvalidArgument
from cortado.store.names import shown

_QUOTED: Final = re.compile(r'"([!#-~]+)"')
_LISTED: Final = re.compile(r'(?:W/)?"([!#-~]*)"')


@dataclass(frozen=True, slots=True)
class Condition:
    """At most one of them holds something."""

    if_absent: bool = False
    if_present: bool = False
    if_match: str | None = None


def quoted(etag: str) -> str:
    """An etag as a header has it."""
    return f'"{etag}"'


def condition_of(headers: Headers) -> Condition:
    """What a write asks for. Raises InvalidArgument naming the header."""
    match, none_match = _joined(headers, "If-Match"), _joined(headers, "If-None-Match")
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
    found = _QUOTED.fullmatch(match)
    if found is None:
        problem = 'must be one strong etag in quotes, such as "0.1763643600000.2", or *'
        raise InvalidArgument("If-Match", problem, shown(match))
    return Condition(if_match=found[1])


def is_unchanged(headers: Headers, etag: str) -> bool:
    """Whether the reader of a read has this version already. Raises InvalidArgument."""
    given = _joined(headers, "If-None-Match")
    if given is None:
        return False
    if given == "*":
        return True
    listed = [each.strip() for each in given.split(",")]
    found = [_LISTED.fullmatch(each) for each in listed]
    if not all(found):
        raise InvalidArgument("If-None-Match", "must be etags in quotes, with commas between them, or *", shown(given))
    return etag in [each[1] for each in found if each]


def _joined(headers: Headers, name: str) -> str | None:
    given = headers.getlist(name)
    return ", ".join(given).strip() if given else None
