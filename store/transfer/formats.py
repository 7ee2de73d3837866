"""The forms of rows in files: a format and a compression, and which libraries those need.

=========  ==========================  ================================  =====================================
format     suffix                      compression when writing          also when reading
=========  ==========================  ================================  =====================================
jsonl      ``.jsonl`` ``.ndjson``      none (default), gzip
           ``.json``, and ``.gz``
csv        ``.csv``, and ``.csv.gz``   none (default), gzip
avro       ``.avro``                   deflate (default), none,          bzip2, xz
                                       snappy *, zstd *
parquet *  ``.parquet``                snappy (default), none, gzip,     what pyarrow reads
                                       zstd
=========  ==========================  ================================  =====================================

Those with a star need pyarrow, which ``pip install 'cortadodb[arrow]'`` brings; the rest needs nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from cortado.errors import InvalidArgument
from cortado.extras import needing
from cortado.store.transfer.csv_text import check_null_text


class Format(StrEnum):
    """How rows are written."""

    JSONL = "jsonl"
    CSV = "csv"
    AVRO = "avro"
    PARQUET = "parquet"


class Compression(StrEnum):
    """The compression of written files."""

    NONE = "none"
    GZIP = "gzip"
    DEFLATE = "deflate"
    SNAPPY = "snappy"
    ZSTD = "zstd"


_WRITTEN_AS: Final = {
    Format.JSONL: (Compression.NONE, Compression.GZIP),
    Format.CSV: (Compression.NONE, Compression.GZIP),
    Format.AVRO: (Compression.DEFLATE, Compression.NONE, Compression.SNAPPY, Compression.ZSTD),
    Format.PARQUET: (Compression.SNAPPY, Compression.NONE, Compression.GZIP, Compression.ZSTD),
}
_OF_SUFFIX: Final = {
    ".jsonl": Format.JSONL,
    ".ndjson": Format.JSONL,
    ".json": Format.JSONL,
    ".csv": Format.CSV,
    ".avro": Format.AVRO,
    ".parquet": Format.PARQUET,
}
GZIP_SUFFIX: Final = ".gz"
_TEXTS: Final = (Format.JSONL, Format.CSV)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A format and its compression; ``null_text`` is how CSV says null."""

    format: Format
    compression: Compression
    null_text: str = ""

    @property
    def suffix(self) -> str:
        """The end of a file's name."""
        if self.format in _TEXTS and self.compression is Compression.GZIP:
            return f".{self.format}{GZIP_SUFFIX}"
        return f".{self.format}"


def encoding_to_write(
    format: str | None, compression: str | None, name: str, default: Format, null_text: str | None = None
) -> Encoding:
    """Return the encoding of a file of this ``name``: the requested one, else the one of its suffix, else ``default``.

    Raises InvalidArgument for an unknown format or compression, Unsupported if its library is missing.
    """
    said = check_format(format) or format_of_name(name)
    if said is None and Path(name).suffix:
        suffixes = ", ".join(_OF_SUFFIX)
        raise InvalidArgument("DESTINATION", f"must end with one of {suffixes}, or --format must be given", name)
    found = said or default
    known = _WRITTEN_AS[found]
    if compression is not None:
        chosen = next((each for each in known if each == compression), None)
        if chosen is None:
            raise InvalidArgument("--compression", f"must be one of {', '.join(known)} for {found}", repr(compression))
    else:
        chosen = Compression.GZIP if found in _TEXTS and name.endswith(GZIP_SUFFIX) else known[0]
    if found is Format.PARQUET:
        pyarrow_for("Parquet")
    elif chosen in (Compression.SNAPPY, Compression.ZSTD):
        pyarrow_for(f"Avro compressed by {chosen}")
    return Encoding(found, chosen, null_text_of(null_text, [found]))


def format_to_read(format: str | None, name: str) -> Format:
    """Return the format of a file: the given one, or the one of its suffix. Raises InvalidArgument if there is
    neither."""
    found = check_format(format) or format_of_name(name)
    if found is None:
        known = ", ".join(_OF_SUFFIX)
        raise InvalidArgument("--format", f"must be given for a file that ends with none of {known}", name)
    return found


def null_text_of(null_text: str | None, formats: Sequence[Format]) -> str:
    """Return how null is said in files of these formats. Raises InvalidArgument if it cannot be said so."""
    if null_text is None:
        return ""
    if any(each is not Format.CSV for each in formats):
        raise InvalidArgument("--null", "is for CSV alone", repr(null_text))
    return check_null_text(null_text)


def check_format(format: str | None) -> Format | None:
    """Return a format by its name. Raises InvalidArgument naming those there are."""
    if format is None:
        return None
    try:
        return Format(format)
    except ValueError:
        raise InvalidArgument("--format", f"must be one of {', '.join(Format)}", repr(format)) from None


def format_of_name(name: str) -> Format | None:
    """Return the format of a file's suffix, without ``.gz``; None for an unknown suffix."""
    plain = name.removesuffix(GZIP_SUFFIX)
    return next((format for suffix, format in _OF_SUFFIX.items() if plain.endswith(suffix)), None)


def pyarrow_for(what: str) -> Any:
    """Return the pyarrow module. Raises Unsupported, which names the extra that brings it, if it is not installed."""
    with needing("arrow", what):
        import pyarrow
    return pyarrow
