"""The error for each failure of the storage below, in one place.

====================================  =========================================================================
the map or the disk is full           ``ResourceExhausted``: the transaction is gone, reads go on, try again
a page that should be there is not    ``DataLoss``: this replica is damaged
closed                                ``Unavailable``
any other failure of a write          :class:`StorageFailed`: end the process
the disk cannot read the data file    the same: it takes no writes either
====================================  =========================================================================

The process must end, because after a failed sync the kernel may have dropped the pages and marked them clean, so a
second sync reports success for bytes that never reached the disk (*Can Applications Recover from fsync Failures?*,
Rebello et al., 2020). A new process reads what really is there.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from typing import Final

import lmdb

from cortado.errors import CortadoError, DataLoss, Internal, ResourceExhausted, Unavailable

RETRY_DELAY_MS: Final = 1_000

_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_OF_THE_DISK: Final = _NO_SPACE | {errno.EIO, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ESTALE, errno.EREMOTEIO}
"""The system's errors for a disk that is full, broken, read-only or gone."""


class StorageFailed(Exception):
    """The disk failed under a write, or cannot read pages that a write needs. Its catcher must end the process (code
    74, EX_IOERR), not answer.

    Not a CortadoError, on purpose: it is no reply to a request. Requests in flight have an unknown outcome.
    """


def is_of_the_disk(error: BaseException | None) -> bool:
    """Return whether the disk is why a node cannot go on: ``error`` says so, or what caused it does.

    Readers meet a failed write, too, and sooner than the writer can tell of it: LMDB refuses every transaction then.
    """
    return any(isinstance(each, StorageFailed) or _blames_the_disk(each) for each in _causes(error))


def is_by_the_disk(error: BaseException | None) -> bool:
    """Return whether the system itself blames the disk; compare :func:`is_of_the_disk`. A directory that cannot be
    opened may as well be another user's, or hold other things than files."""
    return any(map(_blames_the_disk, _causes(error)))


def _blames_the_disk(error: BaseException) -> bool:
    return isinstance(error, lmdb.PanicError) or _system_error(error) in _OF_THE_DISK


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield ``error``, its cause, and so on."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def read_failure(error: lmdb.Error) -> CortadoError:
    """Return the error for a reader."""
    if isinstance(error, lmdb.CorruptedError | lmdb.PageNotFoundError | lmdb.InvalidError):
        return DataLoss("a page of the data file", str(error))
    if isinstance(error, lmdb.PanicError):
        return Unavailable("the disk failed under a write; this process must end")
    if isinstance(error, lmdb.ReadersFullError):
        return ResourceExhausted(str(error), RETRY_DELAY_MS, "read transactions")
    if "closed" in str(error):
        return Unavailable("the data directory is closed")
    return Internal(f"the storage engine: {error}")


def map_full(limit_bytes: int) -> ResourceExhausted:
    return ResourceExhausted(
        f"the memory map of {limit_bytes} bytes is full; start the node with a larger one, or delete data",
        RETRY_DELAY_MS,
        "map",
        limit_bytes,
    )


def disk_full(free_bytes: int, detail: str) -> ResourceExhausted:
    return ResourceExhausted(
        f"the disk under the data directory is full ({free_bytes} bytes free; {detail}); make room, and writes go on",
        RETRY_DELAY_MS,
        "disk",
    )


def is_no_space(error: lmdb.Error) -> bool:
    """No room on the disk, over quota, or over the limit of file size."""
    return _system_error(error) in _NO_SPACE


def is_input_output_error(error: lmdb.Error) -> bool:
    return _system_error(error) == errno.EIO


def _system_error(error: BaseException) -> int | None:
    """Return the system's number of an error, if it has one: errors of LMDB's binding itself have none."""
    number = getattr(error, "code", None) if isinstance(error, lmdb.Error) else getattr(error, "errno", None)
    return number if isinstance(number, int) else None
