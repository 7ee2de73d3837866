"""``docs/formats/keys.md`` is the record of the bytes: its table of tags and its limits are the code's."""

from __future__ import annotations

import re
from pathlib import Path

from cortado.store.keys.codec import NULL_TAG, TAGS
from cortado.store.keys.decimals import DIGITS_MAX, EXPONENT_MAX
from cortado.store.keys.keyspace import ENGINE_KEY_BYTES_MAX, LOGICAL_KEY_BYTES_MAX

PAGE = (Path(__file__).parents[3] / "docs" / "formats" / "keys.md").read_text()


def test_the_page_lists_every_tag() -> None:
    rows = re.findall(r"^\| (\w+) \| `(\w\w)` \|[^|]+\|[^|]+\|$", PAGE, re.MULTILINE)
    listed = {name: int(tag, 16) for name, tag in rows}
    assert listed == {"null": NULL_TAG} | {key_type.value: tag for key_type, tag in TAGS.items()}


def test_the_page_states_the_limits() -> None:
    assert f"at most {ENGINE_KEY_BYTES_MAX} bytes, which leaves {LOGICAL_KEY_BYTES_MAX} for" in PAGE
    assert f"At most {DIGITS_MAX} digits" in PAGE
    assert f"between -{EXPONENT_MAX} and {EXPONENT_MAX};" in PAGE
