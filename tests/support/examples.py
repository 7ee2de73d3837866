"""How many examples a property is tried with: ``HYPOTHESIS_EXAMPLES``, or as many times more as it needs."""

from __future__ import annotations

import os
from typing import Final

EXAMPLES: Final = int(os.environ.get("HYPOTHESIS_EXAMPLES", "40"))
"""The number of examples of a property that does not set its own. CI runs a hundred, ``make test-quick`` ten."""
_OF_CI: Final = 100


def examples(of_ci: int) -> int:
    """Return ``of_ci`` in CI, and elsewhere a number in proportion."""
    return max(1, of_ci * EXAMPLES // _OF_CI)
