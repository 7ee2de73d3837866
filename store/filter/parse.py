"""From a filter's text to its syntax tree.

The grammar (keywords in any case, names of fields in their own)::

    filter     = conjunction { "or" conjunction }
    conjunction = negation { "and" negation }
    negation   = { "not" } predicate
    predicate  = "(" filter ")"
               | operand ( "=" | "==" | "!=" | "<>" | "<" | "<=" | ">" | ">=" ) operand
               | field [ "not" ] "in" "(" literal { "," literal } ")"
               | field [ "not" ] "between" operand "and" operand
               | field [ "not" ] "starts" "with" literal
               | operand "is" [ "not" ] "null"
               | operand                                        -- a boolean field, or true, false, null
    operand    = field | literal
    field      = name { "." name }                              -- "name" or `name` where it is a keyword

``between`` is written out as the two comparisons it stands for. Depth is bounded while parsing, so no text can exhaust
the interpreter's stack, and so are the text's size and the number of nodes.
"""

from __future__ import annotations

from typing import Final

from cortado.errors import InvalidFilter
from cortado.store.filter.expression import (
    And,
    Compare,
    Expression,
    In,
    IsNull,
    Literal,
    LiteralKind,
    Not,
    Operand,
    Operator,
    Or,
    Path,
    StartsWith,
    Truth,
)
from cortado.store.filter.literals import TYPED, bytes_literal, number_literal, typed_literal
from cortado.store.filter.tokens import Token, TokenKind, fail, tokenize

TEXT_BYTES_MAX: Final = 16 * 1024
DEPTH_MAX: Final = 64
NODES_MAX: Final = 1_000

_OPERATORS: Final = {
    "=": Operator.EQ,
    "==": Operator.EQ,
    "!=": Operator.NE,
    "<>": Operator.NE,
    "<": Operator.LT,
    "<=": Operator.LE,
    ">": Operator.GT,
    ">=": Operator.GE,
}
_RESERVED: Final = frozenset({"and", "or", "not", "in", "is", "null", "between", "true", "false", "like"})
_CONSTANTS: Final = {
    "null": (LiteralKind.NULL, None),
    "true": (LiteralKind.BOOLEAN, True),
    "false": (LiteralKind.BOOLEAN, False),
}


def parse_filter(text: str) -> Expression:
    """Return the syntax tree of ``text``. Raises InvalidFilter with the position, and the token that was expected
    there."""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as lone:
        fail(lone.start, "the text is not valid Unicode")
    if size_bytes > TEXT_BYTES_MAX:
        raise InvalidFilter("filter", f"must have at most {TEXT_BYTES_MAX} bytes", f"{size_bytes} bytes")
    return _Parser(tokenize(text)).parse()


class _Parser:
    """Recursive descent over the tokens; ``_depth`` counts open parentheses, the only way to recurse."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0
        self._nodes = 0

    def parse(self) -> Expression:
        expression = self._filter()
        if self._peek().kind is not TokenKind.END:
            self._expected("and, or, or the end")
        return expression

    # --- tokens

    def _peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._next + ahead, len(self._tokens) - 1)]

    def _take(self) -> Token:
        token = self._peek()
        self._next += 1
        return token

    def _accept_word(self, word: str) -> bool:
        found = self._peek().word == word
        self._next += found
        return found

    def _accept_symbol(self, symbol: str) -> bool:
        token = self._peek()
        found = token.kind is TokenKind.SYMBOL and token.text == symbol
        self._next += found
        return found

    def _expect_symbol(self, symbol: str) -> None:
        if not self._accept_symbol(symbol):
            self._expected(f"'{symbol}'")

    def _expected(self, what: str) -> None:
        token = self._peek()
        fail(token.position, f"expected {what}, found {token}")

    def _count(self, position: int) -> int:
        """Count one more node of the tree, which begins at ``position``."""
        self._nodes += 1
        if self._nodes > NODES_MAX:
            fail(position, f"more than {NODES_MAX} operators, fields and values")
        return position

    # --- connectives

    def _filter(self) -> Expression:
        position = self._peek().position
        items = [self._conjunction()]
        while self._accept_word("or"):
            items.append(self._conjunction())
        return items[0] if len(items) == 1 else Or(tuple(items), self._count(position))

    def _conjunction(self) -> Expression:
        position = self._peek().position
        items = [self._negation()]
        while self._accept_word("and"):
            items.append(self._negation())
        return items[0] if len(items) == 1 else And(tuple(items), self._count(position))

    def _negation(self) -> Expression:
        position = self._peek().position
        negated = False
        while self._accept_word("not"):
            # A double negation says nothing, also of the unknown; so a row of them needs no depth.
            negated = not negated
        item = self._predicate()
        return Not(item, self._count(position)) if negated else item

    # --- predicates

    def _predicate(self) -> Expression:
        position = self._peek().position
        if self._accept_symbol("("):
            if self._depth == DEPTH_MAX:
                fail(position, f"more than {DEPTH_MAX} parentheses within each other")
            self._depth += 1
            expression = self._filter()
            self._depth -= 1
            self._expect_symbol(")")
            return expression
        return self._after_operand(self._operand(), position)

    def _after_operand(self, left: Operand, position: int) -> Expression:
        token = self._peek()
        if token.kind is TokenKind.SYMBOL and token.text in _OPERATORS:
            self._take()
            return Compare(_OPERATORS[token.text], left, self._operand(), self._count(position))
        if self._accept_word("is"):
            return self._null_test(left, position)
        negated = token.word == "not"
        self._next += negated
        match self._peek().word:
            case "in":
                predicate = self._in(left, position)
            case "between":
                predicate = self._between(left, position)
            case "starts":
                predicate = self._starts_with(left, position)
            case "like":
                fail(self._peek().position, "like is not part of this grammar; there is: field starts with 'text'")
            case _:
                if negated:
                    self._expected("in, between or starts with")
                return self._truth(left, position)
        return Not(predicate, self._count(position)) if negated else predicate

    def _truth(self, operand: Operand, position: int) -> Expression:
        if isinstance(operand, Literal) and operand.kind not in (LiteralKind.NULL, LiteralKind.BOOLEAN):
            self._expected("a comparison")
        return Truth(operand, self._count(position))

    def _null_test(self, operand: Operand, position: int) -> Expression:
        negated = self._accept_word("not")
        if not self._accept_word("null"):
            self._expected("null" if negated else "null or not null")
        test = IsNull(operand, self._count(position))
        return Not(test, self._count(position)) if negated else test

    def _in(self, operand: Operand, position: int) -> Expression:
        path = self._field_before(operand, "in")
        self._take()
        self._expect_symbol("(")
        items = [self._literal()]
        while self._accept_symbol(","):
            items.append(self._literal())
        if not self._accept_symbol(")"):
            self._expected("',' or ')'")
        return In(path, tuple(items), self._count(position))

    def _between(self, operand: Operand, position: int) -> Expression:
        path = self._field_before(operand, "between")
        self._take()
        lower = self._operand()
        if not self._accept_word("and"):
            self._expected("and")
        upper = self._operand()
        return And(
            (
                Compare(Operator.GE, path, lower, self._count(position)),
                Compare(Operator.LE, path, upper, self._count(position)),
            ),
            self._count(position),
        )

    def _starts_with(self, operand: Operand, position: int) -> Expression:
        path = self._field_before(operand, "starts with")
        self._take()
        if not self._accept_word("with"):
            self._expected("with")
        return StartsWith(path, self._literal(), self._count(position))

    def _field_before(self, operand: Operand, word: str) -> Path:
        if not isinstance(operand, Path):
            fail(operand.position, f"expected a field before {word}")
        return operand

    # --- operands

    def _operand(self) -> Operand:
        token = self._peek()
        if token.kind is TokenKind.QUOTED or (token.word and not self._begins_literal()):
            return self._path()
        return self._literal("a field or a value")

    def _begins_literal(self) -> bool:
        token = self._peek()
        typed = token.word in TYPED and self._peek(1).kind is TokenKind.STRING
        return typed or token.word in _CONSTANTS

    def _path(self) -> Path:
        first = self._peek()
        if first.word in _RESERVED:
            fail(first.position, f'expected a field or a value, found {first} (a field of that name is "{first}")')
        names = [self._take().text]
        while self._accept_symbol("."):
            if self._peek().kind not in (TokenKind.NAME, TokenKind.QUOTED):
                self._expected("a name")
            names.append(self._take().text)
        if len(names) > DEPTH_MAX:
            fail(first.position, f"more than {DEPTH_MAX} names in one field")
        return Path(tuple(names), self._count(first.position))

    def _literal(self, wanted: str = "a value") -> Literal:
        token = self._peek()
        if not (token.kind in (TokenKind.NUMBER, TokenKind.STRING, TokenKind.HEX) or self._begins_literal()):
            hint = " (a string stands in single quotes)" if token.kind is TokenKind.QUOTED else ""
            fail(token.position, f"expected {wanted}, found {token}{hint}")
        self._take()
        position = self._count(token.position)
        match token.kind:
            case TokenKind.NUMBER:
                return number_literal(token.text, position)
            case TokenKind.STRING:
                return Literal(LiteralKind.STRING, token.text, position)
            case TokenKind.HEX:
                return bytes_literal(token.text, position)
        if token.word in TYPED:
            return typed_literal(token.word, self._take().text, position)
        kind, value = _CONSTANTS[token.word]
        return Literal(kind, value, position)
