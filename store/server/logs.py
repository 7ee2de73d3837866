"""What a server says to whoever reads its log: lines on standard error, with the time in UTC."""

from __future__ import annotations

import logging
import sys
import time


def log_to_stderr() -> None:
    """Everything from INFO up, a line each. For the process of a server, before anything else is done."""
    handler = logging.StreamHandler(sys.stderr)
    formatter = logging.Formatter("%(asctime)s.%(msecs)03dZ %(levelname)s %(message)s", "%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    handler.setFormatter(formatter)
    root = logging.getLogger()
    root.addHandler(handler)
    root.setLevel(logging.INFO)
