"""Bounds on schemas and bodies. Each closes a door that a small hostile input would otherwise open wide.

*Depth* counts containers, that is records, arrays and maps, the outermost as 1; a union adds nothing. It is bounded
in the schema (each named type expanded where it is used, up to its recursion) and in the data.

*Free items* are values that take no bytes: nulls and records of nothing else. A block of a billion of them is five
bytes long, so their number in a body's arrays and maps is bounded.
"""

from __future__ import annotations

from typing import Final

SCHEMA_BYTES_MAX: Final = 256 * 1024
"""Length of a declaration, as UTF-8."""

NAME_CHARACTERS_MAX: Final = 255
"""Length of a name, its namespace included."""

SCHEMA_FIELDS_MAX: Final = 2_000
"""Fields declared in one schema, all its records together."""

EXPANDED_FIELDS_MAX: Final = 10_000
"""Fields reachable by distinct paths: thirty records that each hold two of the next would have a billion."""

DEFAULT_VALUES_MAX: Final = 20_000
"""Values in all defaults of a schema together, with the defaults that fill them in, and in branches that were tried."""

FIXED_BYTES_MAX: Final = 1024 * 1024
"""Size of a fixed type."""

DECIMAL_PRECISION_MAX: Final = 1_000
"""Digits of a decimal."""

DEPTH_MAX: Final = 64
"""Nested containers, in a schema and in a document."""

DOCUMENT_BYTES_MAX: Final = 1024 * 1024
"""Length of a body that is to be stored."""

READ_BYTES_MAX: Final = 8 * DOCUMENT_BYTES_MAX
"""Length of a body that is read: the defaults of another schema make a stored one longer."""

FREE_ITEMS_MAX: Final = 10_000
"""Values without bytes in the arrays and maps of one body: no document needs more, and five bytes could ask for
memory."""

INT_MIN: Final = -(2**31)
INT_MAX: Final = 2**31 - 1
LONG_MIN: Final = -(2**63)
LONG_MAX: Final = 2**63 - 1
