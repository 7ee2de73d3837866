"""The two stores of a data directory: LMDB with the data, and beside it the folder of the log files.

The log files' first segment is made with the directory, before it counts as one. So if there is a directory and no log,
the log was lost, and with it this node's votes and the entries that it acknowledged: it must not begin another.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from cortado.errors import DataDirectoryError
from cortado.raft.records import StoredLog
from cortado.store.engine.data_directory import LOG_DIRECTORY, Identity
from cortado.store.engine.failures import StorageFailed
from cortado.store.engine.lmdb_engine import CHECKED_BYTES_DEFAULT, LmdbEngine
from cortado.store.host.opening import stored_log
from cortado.store.log_files.files import FolderFiles
from cortado.store.log_files.log_files import LogFiles
from cortado.store.log_files.recovery import StoredGroup, read_groups
from cortado.store.log_files.segments import nothing_there
from cortado.store.replica.group_range import META_GROUP


@dataclass(frozen=True, slots=True)
class Stores:
    """Both stores, open. The engine's lock keeps other processes from either."""

    engine: LmdbEngine
    log_files: LogFiles

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        new_identity: Callable[[], Identity],
        map_bytes: int | None = None,
        checked_bytes: int | None = CHECKED_BYTES_DEFAULT,
        sync: bool = True,
    ) -> Stores:
        """Open the stores of the directory at ``path``; create it if it does not exist or is empty. Raises
        DataDirectoryError, DataLoss, ResourceExhausted."""
        engine = LmdbEngine.open(
            path,
            new_identity=new_identity,
            map_bytes=map_bytes,
            checked_bytes=checked_bytes,
            sync=sync,
            create_beside=create_log,
        )
        return cls.beside(engine)

    @classmethod
    def beside(cls, engine: LmdbEngine) -> Stores:
        """Open the log files in the engine's data directory. If they can't be opened the engine is closed, too. Raises
        DataDirectoryError, DataLoss, ResourceExhausted."""
        try:
            folder = log_folder(engine.path)
            with _named(engine.path):
                if not folder.is_dir():
                    raise nothing_there()
                return cls(engine, LogFiles.open(FolderFiles(folder), may_begin=False))
        except BaseException:
            engine.close()
            raise

    def log(self) -> StoredLog:
        """Return the group's log as the files held it when they were opened, until a node took it. Raises DataLoss."""
        return stored_log(self.log_files.groups, META_GROUP.group_id, owner=self.engine.identity.storage_id)

    def close(self) -> None:
        """Close both. Raises StorageFailed; both are closed then, too."""
        try:
            self.log_files.close()
        finally:
            self.engine.close()


def create_log(data_dir: Path) -> None:
    """Create the first segment of a new directory, durably; a second call does nothing. Raises DataDirectoryError,
    ResourceExhausted."""
    with _named(data_dir):
        LogFiles.open(FolderFiles(log_folder(data_dir))).close()


def read_log_groups(data_dir: Path) -> dict[int, StoredGroup]:
    """Return the contents of a stopped node's log files, by group id. Nothing is written. Raises DataDirectoryError,
    DataLoss."""
    with _named(data_dir), closing(FolderFiles(log_folder(data_dir), may_write=False)) as files:
        return read_groups(files)


def log_folder(data_dir: Path) -> Path:
    return data_dir / LOG_DIRECTORY


@contextmanager
def _named(data_dir: Path) -> Iterator[None]:
    """Raise DataDirectoryError if the disk fails while a directory is opened: no call was served from it yet."""
    try:
        yield
    except StorageFailed as error:
        raise DataDirectoryError(str(data_dir), f"its log cannot be opened: {error}") from error
