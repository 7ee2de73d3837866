"""The options of an addition to a number: the addend, and the bounds of the sum."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any, Final

from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option

_INT64: Final = (-(1 << 63), (1 << 63) - 1)


@dataclass(frozen=True, slots=True)
class Addition:
    """The addend, and the bounds of the sum."""

    by: Annotated[
        int,
        Option(
            "--by",
            help="The number to add; a negative one subtracts.",
            parser=whole("--by", *_INT64),
            show_default="1",
            metavar="N",
        ),
    ] = 1
    min: Annotated[
        int | None,
        Option("--min", help="Refuse a sum below this.", parser=whole("--min", *_INT64), metavar="N"),
    ] = None
    max: Annotated[
        int | None,
        Option("--max", help="Refuse a sum above this.", parser=whole("--max", *_INT64), metavar="N"),
    ] = None

    def asked(self) -> dict[str, Any]:
        return {"min": self.min, "max": self.max}
