"""Settings that all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Before gRPC is loaded: its handlers of fork abort a child now and then, and tests start many processes.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# The same examples in every run: a property that fails once fails again. Raise HYPOTHESIS_EXAMPLES to search longer.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("HYPOTHESIS_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")
