"""The bundle: one archive for a report, with the findings, the logs without secrets, and metrics."""

from __future__ import annotations

import io
import json
import os
import tarfile
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument

_FOLDER: Final = "cortado-doctor"


def write_bundle(path: Path, report: dict[str, Any], texts: dict[str, str], written_s: int) -> None:
    """``texts`` by the names of files in it. Readable by its owner alone. Raises InvalidArgument."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as opened, tarfile.open(fileobj=opened, mode="w:gz") as archive:
                _add(archive, "report.json", json.dumps(report, indent=2, ensure_ascii=False) + "\n", written_s)
                for name, text in sorted(texts.items()):
                    _add(archive, name, text, written_s)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InvalidArgument("--bundle", f"cannot be written: {error.strerror}", str(path)) from None


def _add(archive: tarfile.TarFile, name: str, text: str, written_s: int) -> None:
    content = text.encode("utf-8", "replace")
    member = tarfile.TarInfo(f"{_FOLDER}/{name}")
    member.size, member.mtime, member.mode = len(content), written_s, 0o600
    archive.addfile(member, io.BytesIO(content))
