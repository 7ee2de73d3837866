"""The bytes of a part: the versions of one range of keys, in a file of their own.

::

    "cortado backup" and two zeros 16 | format 4 | CRC-32 over these 20 bytes 4
    frame H   of which backup, which part, which range of keys: JSON with sorted names
    frame R   a run of versions (runs.py): how it is packed 1 | its bytes unpacked 4 | the run     } any number
    frame E   how many runs and versions there are, a digest of the versions, and one of all bytes before this frame

    frame     tag 1 | length of the body 4 | body | CRC-32 over tag, length and body 4

Every format begins with these 24 bytes: so a format that is not ours is told from a bit that has flipped.

Numbers are big-endian; the checksum is zlib's, which needs nothing installed. It finds bits that a disk flipped, each
at its place; the digest (SHA-256) finds a frame that is missing, doubled, or of another file. The reader trusts
nothing: every length is bounded before it is used, and a run is unpacked no further than it says.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import BinaryIO, Final

from cortado.errors import DataLoss, Unsupported
from cortado.store.backup.runs import RUN_BYTES_MAX, ContentDigest, Run, decode_run
from cortado.store.transfer.directory import Directory
from cortado.store.transfer.files import Sink

MAGIC: Final = b"cortado backup\0\0"
FORMAT: Final = 4
FRAME_BYTES_MAX: Final = RUN_BYTES_MAX + (1 << 10)

_HEADER, _RUN, _END = b"H", b"R", b"E"
_PLAIN, _ZLIB = 0, 1
_ZLIB_LEVEL: Final = 1
_FORMAT_BYTES: Final = 4
_HEAD: Final = struct.Struct(">cI")
_CHECKSUM_BYTES: Final = 4
_RUN_HEAD: Final = struct.Struct(">BI")
_ENDING: Final = struct.Struct(">IQ32s32s")


@dataclass(frozen=True, slots=True)
class PartHeader:
    """The backup and the part of it: the logical keys in ``[start, end)``, in hexadecimal."""

    backup_id: str
    part: int
    start: str
    end: str

    def encode(self) -> bytes:
        return json.dumps(asdict(self), sort_keys=True).encode()


@dataclass(frozen=True, slots=True)
class PartEnd:
    """The counts and digests of a whole part: ``content`` is the digest of its versions, ``sha256`` that of the
    file."""

    versions: int
    content: str
    bytes: int
    sha256: str


# --- writing -------------------------------------------------------------------------------------------------------


class PartWriter:
    """A part in the making, into a file that is in the making, too."""

    def __init__(self, file: Sink, header: PartHeader) -> None:
        self._file = file
        self._content = ContentDigest()
        self._digest = hashlib.sha256()
        self._bytes = 0
        self._runs = 0
        prefix = MAGIC + FORMAT.to_bytes(_FORMAT_BYTES)
        self._write(prefix + _checksum(prefix) + _frame(_HEADER, header.encode()))

    @property
    def versions(self) -> int:
        """How many there are so far."""
        return self._content.versions

    def add(self, body: bytes) -> None:
        """Write the next run, given as bytes. Raises DataLoss if they are no run."""
        run = decode_run(body, "a reply")
        if not run.keys:
            return
        self._content.add(run)
        self._runs += 1
        packed, how = zlib.compress(body, _ZLIB_LEVEL), _ZLIB
        if len(packed) >= len(body):
            packed, how = body, _PLAIN
        self._write(_frame(_RUN, _RUN_HEAD.pack(how, len(body)) + packed))

    def end(self) -> PartEnd:
        """End the part: all is there."""
        content = self._content.hexdigest()
        ending = _ENDING.pack(self._runs, self.versions, bytes.fromhex(content), self._digest.digest())
        self._write(_frame(_END, ending))
        return PartEnd(self.versions, content, self._bytes, self._digest.hexdigest())

    def _write(self, data: bytes) -> None:
        self._digest.update(data)
        self._bytes += len(data)
        self._file.write(data)


def _frame(tag: bytes, body: bytes) -> bytes:
    head = _HEAD.pack(tag, len(body)) + body
    return head + _checksum(head)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKSUM_BYTES)


# --- reading -------------------------------------------------------------------------------------------------------


class PartReader:
    """Reads one part: :meth:`runs` gives its versions, and verifies every byte by the time it is done. ``found`` says
    then what there was.

    Raises DataLoss that names the file and the byte, Unsupported for another format, InvalidArgument if there is no
    such file.
    """

    def __init__(self, directory: Directory, name: str, header: PartHeader) -> None:
        """``header`` is the header that the part must begin with."""
        self._directory = directory
        self._name = name
        self._path = f"{directory}/{name}"
        self._header = header
        self._offset = 0
        self._digest = hashlib.sha256()
        self.found: PartEnd | None = None

    def runs(self) -> Iterator[Run]:
        """Yield its runs, in order."""
        with self._directory.reading(self._name) as file:
            self._begin(file)
            content, runs = ContentDigest(), 0
            while True:
                before_end, began = self._digest.digest(), self._offset
                tag, body = self._frame(file)
                if tag != _RUN:
                    break
                run = self._unpacked(body, began)
                content.add(run)
                runs += 1
                yield run
            versions, digest = content.versions, content.hexdigest()
            ending = _ENDING.pack(runs, versions, bytes.fromhex(digest), before_end)
            if tag != _END or body != ending:
                raise self._damaged(f"the frame at byte {began} does not end what is there")
            if file.read(1):
                raise self._damaged(f"something stands behind its end, at byte {self._offset}")
            self.found = PartEnd(versions, digest, self._offset, self._digest.hexdigest())

    def _begin(self, file: BinaryIO) -> None:
        prefix = self._take(file, len(MAGIC) + _FORMAT_BYTES)
        if not prefix.startswith(MAGIC):
            raise self._damaged("it does not begin as a part of a backup")
        if self._take(file, _CHECKSUM_BYTES) != _checksum(prefix):
            raise self._damaged("its first 20 bytes have a wrong checksum")
        check_format(int.from_bytes(prefix[len(MAGIC) :]), self._path)
        tag, body = self._frame(file)
        if tag != _HEADER:
            raise self._damaged("its first frame is no header")
        if body != self._header.encode():
            raise self._damaged(f"it is of another backup, or another part of it: {body[:200]!r}")

    def _frame(self, file: BinaryIO) -> tuple[bytes, bytes]:
        began = self._offset
        head = self._take(file, _HEAD.size)
        tag, length = _HEAD.unpack(head)
        if tag not in (_HEADER, _RUN, _END) or length > FRAME_BYTES_MAX:
            raise self._damaged(f"there is no frame at byte {began}")
        body = self._take(file, length)
        if self._take(file, _CHECKSUM_BYTES) != _checksum(head + body):
            raise self._damaged(f"the frame of {length} bytes at byte {began} has a wrong checksum")
        return tag, body

    def _take(self, file: BinaryIO, size_bytes: int) -> bytes:
        data = file.read(size_bytes)
        self._digest.update(data)
        self._offset += len(data)
        if len(data) < size_bytes:
            raise self._damaged(f"it ends at byte {self._offset}, in the middle of a frame")
        return data

    def _unpacked(self, body: bytes, began: int) -> Run:
        if len(body) < _RUN_HEAD.size:
            raise self._damaged(f"the run at byte {began} has {len(body)} bytes")
        how, size_bytes = _RUN_HEAD.unpack_from(body)
        packed = body[_RUN_HEAD.size :]
        if how not in (_PLAIN, _ZLIB) or size_bytes > RUN_BYTES_MAX:
            raise self._damaged(f"the run at byte {began} is packed as {how}, into {size_bytes} bytes")
        run = packed if how == _PLAIN else self._inflated(packed, size_bytes, began)
        if len(run) != size_bytes:
            raise self._damaged(f"the run at byte {began} has {len(run)} bytes, and says {size_bytes}")
        return decode_run(run, f"{self._path}, byte {began}")

    def _inflated(self, packed: bytes, size_bytes: int, began: int) -> bytes:
        try:
            return zlib.decompressobj().decompress(packed, size_bytes + 1)
        except zlib.error as error:
            raise self._damaged(f"the run at byte {began} cannot be unpacked: {error}") from None

    def _damaged(self, detail: str) -> DataLoss:
        return DataLoss(self._path, detail)


def read_end(directory: Directory, name: str, header: PartHeader) -> PartEnd:
    """Return the end of a part, every byte verified. Raises as :class:`PartReader`."""
    reader = PartReader(directory, name, header)
    for _ in reader.runs():
        pass
    assert reader.found is not None
    return reader.found


def check_format(found: int, what: str) -> None:
    """Raises Unsupported for another format than this version's."""
    if found != FORMAT:
        raise Unsupported(
            "a backup of another version", f"{what} is of format {found}, this version reads format {FORMAT}"
        )
