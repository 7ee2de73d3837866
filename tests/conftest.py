"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# The same examples in every run: a property that fails once fails again. Raise HYPOTHESIS_EXAMPLES to search longer.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
