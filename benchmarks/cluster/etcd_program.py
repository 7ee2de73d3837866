"""The program that asks etcd by its own client: built from ``etcd_load/main.go`` with Debian's packages, offline.

Debian's golang-etcd-server-dev brings the source of clientv3 and of all that it needs below ``/usr/share/gocode``.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

GOPATH: Final = Path("/usr/share/gocode")
CLIENT: Final = GOPATH / "src/go.etcd.io/etcd/clientv3"
SOURCE: Final = Path(__file__).parent / "etcd_load" / "main.go"
BUILT: Final = Path(__file__).parents[2] / "build" / "etcd_load"


class NotBuilt(Exception):
    """Names the missing packages."""


def build() -> str:
    """Build it; return its path. Raises NotBuilt if Go or the client's source is missing, or they do not fit."""
    go = shutil.which("go")
    missing = [] if go is not None else ["golang-go"]
    missing += [] if CLIENT.is_dir() else ["golang-etcd-server-dev"]
    if go is None or missing:
        raise NotBuilt(f"not installed: {' '.join(missing)}")
    environment = {**os.environ, "GOPATH": str(GOPATH), "GO111MODULE": "off", "GOFLAGS": "", "CGO_ENABLED": "0"}
    # Go keeps compiled code, and finds itself whether anything changed.
    command = [go, "build", "-o", str(BUILT), str(SOURCE)]
    built = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if built.returncode:
        raise NotBuilt(f"go build failed: {built.stderr.strip()[:500]}")
    return str(BUILT)
