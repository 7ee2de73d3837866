"""An object store at ``objects://``. As in S3, no reader sees a part of an object.

fsspec's own ``memory://`` shows an object while it is written, and its readers share one position. Two threads may read
less than was put. Here the objects are files of a disk: a test can copy or damage them.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem


class ObjectStore(LocalFileSystem):
    """``objects:///path/of/a/disk``."""

    protocol = "objects"

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        # Old versions know their own two protocols alone.
        stripped: str = super()._strip_protocol(os.fspath(path).removeprefix(f"{cls.protocol}://"))
        return stripped

    def unstrip_protocol(self, name: str) -> str:
        return f"{self.protocol}://{self._strip_protocol(name)}"

    def put_file(self, lpath: str, rpath: str, callback: Any = None, **options: Any) -> None:
        path = self._strip_protocol(rpath)
        shutil.copyfile(lpath, f"{path}~")
        Path(f"{path}~").replace(path)

    def ls(self, path: str, detail: bool = False, **options: Any) -> list[Any]:
        found = super().ls(path, detail=True, **options)
        whole = [entry for entry in found if not entry["name"].endswith("~")]
        return whole if detail else [entry["name"] for entry in whole]


fsspec.register_implementation(ObjectStore.protocol, ObjectStore, clobber=True)
