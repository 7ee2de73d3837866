"""The data directory: its identity, its format, and its lock for one process.

::

    cortado-data/
      LOCK             flock'ed by the process that has the directory open; its process id as text
      FORMAT           "cortado-data 12\\n": the format of all files here; written last: if it exists, all do
      identity.json    {"cluster_id": "...", "node_id": "...", "storage_id": "...", "crc32c": "..."}
      engine/          LMDB's data.mdb and lock.mdb
      log/             the log files (``cortado.store.log_files``)

Directories have mode 0700 and files 0600, whatever the umask; wider ones are mended at an open (``private_files.py``).
A flipped bit of an id would make another node of this one. So the identity carries a checksum of its ids, and its text
is accepted only as it would be written, to the byte.

Each file is created under another name, synced, renamed, and the directory synced: there is no half-written one. A
crash before FORMAT exists leaves a directory that never held an acknowledged write, and creation simply goes on. A
directory that holds other files and no FORMAT is not ours, and is refused.

A directory that is to join a cluster exists before it belongs to it: its cluster id is empty, and is written once, by
:meth:`DataDirectory.join_cluster`. A crash leaves it either empty or written.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final

import google_crc32c

from cortado.errors import DataDirectoryError, InvalidArgument
from cortado.store.engine.private_files import DIRECTORY_MODE, FILE_MODE, make_private
from cortado.store.files.regular_files import open_regular, read_regular

FORMAT_VERSION: Final = 12
ENGINE_DIRECTORY: Final = "engine"
LOG_DIRECTORY: Final = "log"

_FORMAT_FILE: Final = "FORMAT"
_FORMAT_WORD: Final = "cortado-data"
_IDENTITY_FILE: Final = "identity.json"
_LOCK_FILE: Final = "LOCK"
_TEMPORARY: Final = ".new"
_TEXT_BYTES_MAX: Final = 4_096
"""The most bytes of ``FORMAT`` and of ``identity.json``, which have some hundred."""
_REPLACE: Final = (
    "what this node is called can't be told from anything else here: replace it by a member under a new id with an "
    "empty directory; a cluster of one: restore the file from a backup"
)
_OURS: Final = frozenset(
    {
        _LOCK_FILE,
        _IDENTITY_FILE,
        ENGINE_DIRECTORY,
        LOG_DIRECTORY,
        _FORMAT_FILE + _TEMPORARY,
        _IDENTITY_FILE + _TEMPORARY,
    }
)


@dataclass(frozen=True, slots=True)
class Identity:
    """A node's identity, for ever: drawn once, when its data directory is created. Printable, without blanks.

    ``cluster_id`` is empty until the directory belongs to a cluster. ``storage_id`` tells this directory from any other
    that may come under the same node id: an empty disk must not vote in the name of the one that was lost.
    """

    cluster_id: str
    node_id: str
    storage_id: str


class DataDirectory:
    """An open and locked data directory. Close it when the engine inside is closed."""

    def __init__(self, path: Path, identity: Identity, lock_file: int | None) -> None:
        self.path = path
        self.identity = identity
        self._lock_file = lock_file

    @property
    def engine_path(self) -> Path:
        return self.path / ENGINE_DIRECTORY

    @property
    def data_file(self) -> Path:
        return self.engine_path / "data.mdb"

    @classmethod
    def open(
        cls, path: Path, *, new_identity: Callable[[], Identity], create_engine: Callable[[Path], None]
    ) -> DataDirectory:
        """Lock the directory, and create it if it does not exist or is empty.

        ``create_engine`` makes a durable, empty engine in the directory that it is given; it is called again if an
        earlier creation was cut off. Raises DataDirectoryError.
        """
        try:
            if path.exists() and not path.is_dir():
                raise DataDirectoryError(str(path), "not a directory")
            path.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
            complete = _check_format(path)
            make_private(path)
            lock_file = _lock(path)
        except OSError as problem:
            raise DataDirectoryError(str(path), f"cannot be opened: {problem.strerror}") from problem
        try:
            # Looked at again under the lock: another process may just have created it.
            if not (complete or _check_format(path)):
                _create(path, new_identity(), create_engine)
            return cls(path, _read_identity(path), lock_file)
        except OSError as problem:
            os.close(lock_file)
            raise DataDirectoryError(str(path), f"cannot be opened: {problem.strerror}") from problem
        except BaseException:
            os.close(lock_file)
            raise

    @classmethod
    def open_stopped(cls, path: Path) -> DataDirectory:
        """Lock the directory of a node that does not run, to read it: not a byte of it is written.

        Several may read it at a time; a server that is started meanwhile is refused. Raises DataDirectoryError if it is
        not complete, if a process has it, or if it is damaged.
        """
        try:
            if not path.is_dir() or not _check_format(path):
                raise DataDirectoryError(str(path), "holds no node's data")
            lock_file = _lock_for_reading(path)
        except OSError as problem:
            raise DataDirectoryError(str(path), f"cannot be opened: {problem.strerror}") from problem
        try:
            return cls(path, _read_identity(path), lock_file)
        except BaseException:
            if lock_file is not None:
                os.close(lock_file)
            raise

    def join_cluster(self, cluster_id: str) -> None:
        """Belong to a cluster from now on, durably. Again with the same id does nothing.

        Raises DataDirectoryError if the directory belongs to another cluster, or cannot be written.
        """
        if not cluster_id:
            raise InvalidArgument("cluster_id", "must not be empty")
        if self.identity.cluster_id not in ("", cluster_id):
            problem = f"belongs to cluster {self.identity.cluster_id}, and cannot join cluster {cluster_id}"
            raise DataDirectoryError(str(self.path), problem)
        if self.identity.cluster_id != cluster_id:
            self._write_cluster(cluster_id)

    def begin_cluster(self, cluster_id: str) -> None:
        """Belong to a new cluster, whatever its cluster before; for recovery from a lost majority alone.

        Nodes of the old one will refuse this one, and be refused by it. Raises DataDirectoryError.
        """
        self._write_cluster(cluster_id)

    def _write_cluster(self, cluster_id: str) -> None:
        identity = replace(self.identity, cluster_id=cluster_id)
        try:
            _write_durably(self.path, _IDENTITY_FILE, _identity_text(identity))
        except OSError as problem:
            reason = f"its {_IDENTITY_FILE} cannot be written: {problem.strerror}"
            raise DataDirectoryError(str(self.path), reason) from problem
        self.identity = identity

    def close(self) -> None:
        """Let another process have it. A second call does nothing."""
        if self._lock_file is not None:
            os.close(self._lock_file)
            self._lock_file = None


def _check_format(path: Path) -> bool:
    """Return True if the directory is complete, False if it is to be created. Raises DataDirectoryError otherwise."""
    try:
        text = read_regular(path / _FORMAT_FILE, _TEXT_BYTES_MAX).decode(errors="replace")
    except FileNotFoundError:
        foreign = sorted({each.name for each in path.iterdir()} - _OURS)
        if foreign:
            problem = f"not empty, and not a Cortado data directory (it holds {foreign[0]!r}): give another path"
            raise DataDirectoryError(str(path), problem) from None
        return False
    except OSError as error:
        raise DataDirectoryError(str(path), f"its {_FORMAT_FILE} cannot be read: {error.strerror}") from None
    word, _, version = text.strip().partition(" ")
    if word != _FORMAT_WORD or not version.isdigit():
        raise DataDirectoryError(str(path), f"its {_FORMAT_FILE} file is damaged: {text[:40]!r}")
    if int(version) != FORMAT_VERSION:
        problem = f"of format version {version}; this build of Cortado reads version {FORMAT_VERSION} only"
        raise DataDirectoryError(str(path), problem)
    return True


def _lock(path: Path) -> int:
    """Lock the directory, and return the lock file's descriptor; closing it, or the end of the process however it
    comes, releases the lock."""
    descriptor = open_regular(path / _LOCK_FILE, os.O_RDWR | os.O_CREAT, FILE_MODE)
    _flock(path, descriptor, fcntl.LOCK_EX)
    owner_line = f"{os.getpid()}\n".encode()
    # The lock counts; the text is for operators. On a full disk, which is to be opened for reads, there may be no room
    # for it.
    with suppress(OSError):
        os.pwrite(descriptor, owner_line, 0)
        os.ftruncate(descriptor, len(owner_line))
    return descriptor


def _lock_for_reading(path: Path) -> int | None:
    """Lock as :func:`_lock` does, shared with other readers. Returns None without a lock file, which no process can
    hold then: a copy of a directory may lack it, and is not to get one."""
    try:
        descriptor = open_regular(path / _LOCK_FILE)
    except FileNotFoundError:
        return None
    _flock(path, descriptor, fcntl.LOCK_SH)
    return descriptor


def _flock(path: Path, descriptor: int, kind: int) -> None:
    """Lock, or close the descriptor and raise: DataDirectoryError naming the process that has the directory."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        owner = os.read(descriptor, 32).decode("ascii", "replace").strip()
        os.close(descriptor)
        raise DataDirectoryError(str(path), f"in use by {_process(owner)}") from None
    except OSError:
        os.close(descriptor)
        raise


def _process(owner: str) -> str:
    """Return the holder of the lock in words. A process that only reads leaves the number of the last server in the
    file."""
    if owner.isdigit() and Path("/proc/self").exists() and not Path(f"/proc/{owner}").exists():
        return "a command that reads it, such as cortado scrub --data-dir"
    return f"process {owner or 'of unknown id'}"


def _create(path: Path, identity: Identity, create_engine: Callable[[Path], None]) -> None:
    engine_path = path / ENGINE_DIRECTORY
    if engine_path.exists():
        # Left by a creation that was cut off: FORMAT is missing, so nothing was ever acknowledged from it.
        for name in ("data.mdb", "lock.mdb"):
            (engine_path / name).unlink(missing_ok=True)
    engine_path.mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    create_engine(engine_path)
    _sync_directory(engine_path)
    _write_durably(path, _IDENTITY_FILE, _identity_text(identity))
    # The directory's own name must survive too, and those of parents that were made along with it.
    for parent in path.resolve().parents:
        # One that this process may not read was not made by it.
        with suppress(PermissionError):
            _sync_directory(parent)
        if parent.is_mount():
            break
    _write_durably(path, _FORMAT_FILE, f"{_FORMAT_WORD} {FORMAT_VERSION}\n")


def _identity_text(identity: Identity) -> str:
    return json.dumps(asdict(identity) | {"crc32c": _identity_checksum(identity)}, indent=2) + "\n"


def _identity_checksum(identity: Identity) -> str:
    """Over the ids as they are written, so that none can lose a byte to its neighbour."""
    return f"{google_crc32c.value(json.dumps(asdict(identity)).encode()):08x}"


def _read_identity(path: Path) -> Identity:
    try:
        text = read_regular(path / _IDENTITY_FILE, _TEXT_BYTES_MAX).decode(errors="replace")
    except FileNotFoundError:
        raise DataDirectoryError(str(path), f"its {_IDENTITY_FILE} is missing; {_REPLACE}") from None
    except OSError as problem:
        raise DataDirectoryError(str(path), f"its {_IDENTITY_FILE} cannot be read: {problem.strerror}") from None
    try:
        record = json.loads(text)
        identity = Identity(record["cluster_id"], record["node_id"], record["storage_id"])
        stored_checksum = record["crc32c"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged_identity(path, "it is not the record of a node's ids") from None
    for name, value in asdict(identity).items():
        if not isinstance(value, str) or not (value or name == "cluster_id"):
            raise _damaged_identity(path, f"{name} is {value!r}")
    if stored_checksum != _identity_checksum(identity):
        found = f"its ids have the checksum {_identity_checksum(identity)}, not {stored_checksum!r}"
        raise _damaged_identity(path, found)
    if text != _identity_text(identity):
        raise _damaged_identity(path, "its ids are whole, but other text stands between or behind them")
    return identity


def _damaged_identity(path: Path, what: str) -> DataDirectoryError:
    return DataDirectoryError(str(path), f"its {_IDENTITY_FILE} is damaged: {what}; {_REPLACE}")


def _write_durably(directory: Path, name: str, text: str) -> None:
    temporary = directory / (name + _TEMPORARY)
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, FILE_MODE)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(directory / name)
    _sync_directory(directory)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
