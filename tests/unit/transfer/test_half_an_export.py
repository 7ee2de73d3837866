"""An export that is not done is no import's source, and the error says how to finish it."""

from __future__ import annotations

from pathlib import Path

import pytest

from cortado.errors import InvalidArgument
from cortado.store.transfer.manifest import CHECKPOINT, read_manifest


def test_half_an_export_is_refused_with_what_ends_it(tmp_path: Path) -> None:
    (tmp_path / CHECKPOINT).write_text("{}")
    with pytest.raises(InvalidArgument, match="not done: end it first, with cortado export --resume"):
        read_manifest(tmp_path)
