"""A filter's text cut into tokens, and the one way in which a filter is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NoReturn

from cortado.errors import InvalidFilter


class TokenKind(StrEnum):
    """The kind of a token; the value is how an error names it."""

    NAME = "name"
    QUOTED = "quoted name"
    NUMBER = "number"
    STRING = "string"
    HEX = "bytes"
    SYMBOL = "symbol"
    END = "the end"


@dataclass(frozen=True, slots=True)
class Token:
    """``text`` without its quotes; ``raw`` as it was written; ``position`` counts characters from 0."""

    kind: TokenKind
    text: str
    raw: str
    position: int

    @property
    def word(self) -> str:
        """The lower-case text of a plain name, which may be a keyword; empty for any other token."""
        return self.text.lower() if self.kind is TokenKind.NAME else ""

    def __str__(self) -> str:
        return "the end" if self.kind is TokenKind.END else (self.raw if len(self.raw) <= 40 else f"{self.raw[:40]}...")


_TOKEN: Final = re.compile(
    r"""(?P<SPACE>\s+)
    |(?P<HEX>[xX]'[^']*')
    |(?P<NUMBER>[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    |(?P<NAME>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<STRING>'(?:[^']|'')*')
    |(?P<QUOTED>"[^"]*"|`[^`]*`)
    |(?P<SYMBOL>==|!=|<>|<=|>=|[=<>(),.])""",
    re.VERBOSE,
)
_NO_END: Final = {"'": "a string", '"': "a quoted name", "`": "a quoted name"}


def fail(position: int, problem: str) -> NoReturn:
    """Raise InvalidFilter: ``problem``, and where."""
    raise InvalidFilter("filter", f"{problem}, at character {position}", position=position)


def tokenize(text: str) -> list[Token]:
    """Return all tokens, the last of them END. Raises InvalidFilter at a character that begins none."""
    tokens: list[Token] = []
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            first = text[position]
            fail(position, f"{_NO_END[first]} has no end" if first in _NO_END else f"unexpected character {first!r}")
        if match.lastgroup != "SPACE":
            tokens.append(_token(TokenKind[match.lastgroup or ""], match.group(), position))
            _check_separated(tokens)
        position = match.end()
    tokens.append(Token(TokenKind.END, "", "", len(text)))
    return tokens


def _token(kind: TokenKind, raw: str, position: int) -> Token:
    match kind:
        case TokenKind.STRING:
            return Token(kind, raw[1:-1].replace("''", "'"), raw, position)
        case TokenKind.QUOTED:
            return Token(kind, raw[1:-1], raw, position)
        case TokenKind.HEX:
            return Token(kind, raw[2:-1], raw, position)
        case _:
            return Token(kind, raw, raw, position)


def _check_separated(tokens: list[Token]) -> None:
    """Refuse ``12abc``: a number that runs into a name was meant as something else."""
    if len(tokens) < 2:
        return
    before, token = tokens[-2], tokens[-1]
    touching = before.position + len(before.raw) == token.position
    if touching and before.kind is TokenKind.NUMBER and token.kind in (TokenKind.NAME, TokenKind.NUMBER):
        fail(before.position, f"malformed number {before.raw}{token.raw}"[:60])
