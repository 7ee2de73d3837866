"""Which failures are the disk's: the process ends with code 74 for them, whichever thread met them first."""

from __future__ import annotations

import errno

import lmdb
import pytest

from cortado.errors import CortadoError, DataLoss, Internal, Unavailable
from cortado.store.engine.failures import StorageFailed, is_of_the_disk, read_failure


def raised(error: lmdb.Error) -> CortadoError:
    """Return the error of a reader, as the engine raises it."""
    try:
        raise read_failure(error) from error
    except CortadoError as told:
        return told


def of_system(number: int) -> lmdb.Error:
    error = lmdb.Error("mdb_txn_commit")
    error.code = number
    return error


DISK = [errno.EIO, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENXIO, errno.ENODEV, errno.ESTALE]


@pytest.mark.parametrize("number", DISK, ids=errno.errorcode.get)
def test_an_error_of_the_system_that_is_the_disks_is_found_behind_whatever_was_made_of_it(number: int) -> None:
    assert is_of_the_disk(of_system(number))
    assert is_of_the_disk(OSError(number, "the disk"))
    assert is_of_the_disk(raised(of_system(number)))
    try:
        try:
            raise OSError(number, "the disk")
        except OSError as problem:
            raise Internal("a step could not be done") from problem
    except Internal as told:
        assert is_of_the_disk(told)


def test_a_reader_that_meets_what_a_failed_write_left_ends_the_process_as_the_writer_would() -> None:
    told = raised(lmdb.PanicError("mdb_txn_begin: Update of meta page failed or environment had fatal error"))
    assert isinstance(told, Unavailable)
    assert is_of_the_disk(told)
    assert is_of_the_disk(StorageFailed("the log files"))


@pytest.mark.parametrize(
    "error",
    [
        Internal("a defect"),
        DataLoss("the log", "it is damaged"),
        AssertionError("a defect"),
        OSError(errno.ENOENT, "gone"),
        of_system(errno.EINVAL),
        lmdb.Error("what the binding says by itself"),
        raised(lmdb.CorruptedError("mdb_get")),
    ],
    ids=repr,
)
def test_a_defect_and_damage_are_not_the_disks(error: BaseException) -> None:
    assert not is_of_the_disk(error)
