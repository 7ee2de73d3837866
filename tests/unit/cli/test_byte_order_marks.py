"""A byte order mark before JSON is named as one, wherever JSON is read from."""

from __future__ import annotations

import codecs
import io
import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from cortado.errors import InvalidArgument, InvalidSchema
from cortado.schema.json_text import parse_json_bytes
from cortado.schema.parse import parse_schema
from cortado.store.cli.input import json_input, read_text
from cortado.store.transfer.json_source import lines_of, value_of

VALUE = {"id": "tea"}
TEXT = json.dumps(VALUE)
MARKED = codecs.BOM_UTF8 + TEXT.encode()
OF_UTF_8 = "must be JSON without a byte order mark .*EF BB BF"
OF_UTF_16 = "must be UTF-8: it begins with a byte order mark of UTF-16 .F[EF] F[EF]"
LITTLE, BIG = (mark + TEXT.encode(f"utf-16-{name}e") for mark, name in ((codecs.BOM_LE, "l"), (codecs.BOM_BE, "b")))


@pytest.mark.parametrize(("content", "named"), [(MARKED, OF_UTF_8), (LITTLE, OF_UTF_16), (BIG, OF_UTF_16)])
def test_json_behind_a_mark_is_refused_by_its_name(content: bytes, named: str) -> None:
    with pytest.raises(InvalidArgument, match=named) as refused:
        parse_json_bytes(content, "body")
    assert refused.value.field == "body"


def test_a_mark_within_json_is_a_character() -> None:
    assert parse_json_bytes('"a\ufeffb"'.encode(), "body") == "a\ufeffb"


def test_of_lines_the_first_one_is_refused() -> None:
    (_, first), (_, second) = lines_of(io.BytesIO(MARKED + b"\n" + TEXT.encode()), "rows.jsonl")
    with pytest.raises(InvalidArgument, match=OF_UTF_8):
        value_of(first)
    assert value_of(second) == VALUE


def test_a_file_of_one_value_is_not_guessed_at(tmp_path: Path) -> None:
    path = tmp_path / "value.json"
    path.write_bytes(MARKED)
    with ExitStack() as stack:
        given = json_input(str(path), stack)
        assert given.only is not None
        with pytest.raises(InvalidArgument, match=OF_UTF_8):
            parse_json_bytes(given.only.encode(), given.name)
    for content in (LITTLE, BIG):
        path.write_bytes(content)
        with ExitStack() as stack, pytest.raises(InvalidArgument, match=OF_UTF_16) as refused:
            json_input(str(path), stack)
        assert refused.value.value == str(path)


def test_a_file_of_lines_keeps_its_mark(tmp_path: Path) -> None:
    path = tmp_path / "values.jsonl"
    path.write_bytes(MARKED + b"\n" + TEXT.encode() + b"\n")
    with ExitStack() as stack:
        given = json_input(str(path), stack)
        assert given.only is None and given.lines.readline() == MARKED + b"\n"


def test_a_schema_behind_a_mark_is_refused_by_its_name(tmp_path: Path) -> None:
    path = tmp_path / "schema.avsc"
    path.write_bytes(codecs.BOM_UTF8 + b'"string"')
    with pytest.raises(InvalidSchema, match=OF_UTF_8):
        parse_schema(read_text(str(path)))
    path.write_bytes(LITTLE)
    with pytest.raises(InvalidArgument, match=OF_UTF_16):
        read_text(str(path))
