"""Any rows of any schema survive as CSV, and Python's own CSV agrees about the cells."""

from __future__ import annotations

import csv
import io
from typing import BinaryIO, cast

from hypothesis import assume, given
from hypothesis import strategies as st

from cortado.errors import InvalidArgument
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.parse import parse_document_schema
from cortado.schema.text_format import to_texts
from cortado.store.transfer.csv_source import csv_chunks
from cortado.store.transfer.csv_text import cells_of, line_of
from cortado.store.transfer.rows import Target
from support.avro_strategies import declaration_text, document_declarations, values_of

NULL_TEXTS = st.sampled_from(["", "NULL", "\\N", "a", "0"])
CELLS = st.text('ab0," \r\n\\N\0é', max_size=6)


@given(st.data(), NULL_TEXTS, st.sampled_from(["\n", "\r\n"]))
def test_rows_come_back_from_csv_as_they_were(data: st.DataObject, null_text: str, end: str) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    names = [each.name for each in schema.record.fields]
    assume(names)
    bodies = [encode_document(schema, each) for each in data.draw(st.lists(values_of(schema.root), max_size=4))]
    lines = [",".join(names)]
    for body in bodies:
        texts = to_texts(schema, decode_document(schema, body))
        lines.append(line_of([texts[name] for name in names], null_text))
    file = io.BytesIO("".join(line + end for line in lines).encode())
    chunks = list(csv_chunks(cast(BinaryIO, file), "x.csv", Target("a.b", 7, schema, {}), null_text=null_text))
    assert not [bad for chunk in chunks for bad in chunk.refused]
    assert [body for chunk in chunks for body in chunk.bodies()] == bodies


@given(st.lists(st.lists(CELLS | st.none(), min_size=2, max_size=3), max_size=3))
def test_pythons_reader_finds_the_same_texts(records: list[list[str | None]]) -> None:
    text = "".join(line_of(cells, "NULL") + "\n" for cells in records)
    read = [*csv.reader(io.StringIO(text, newline=""), strict=True)]
    assert read == [["NULL" if cell is None else cell for cell in cells] for cells in records]


@given(st.lists(CELLS, min_size=1, max_size=4), st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
def test_what_pythons_writer_writes_is_read(cells: list[str], quoting: int) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, quoting=quoting).writerow(cells)
    first, *others = written.getvalue().splitlines(keepends=True) if "\n" not in "".join(cells) else _lines(written)
    rest = iter(others)
    assert cells_of(first, lambda: next(rest), None, len(cells)) == cells


def _lines(written: io.StringIO) -> list[str]:
    return [line.decode() for line in io.BytesIO(written.getvalue().encode())]


@given(st.binary(max_size=60) | st.text('a,"\n\r', max_size=40).map(str.encode))
def test_any_bytes_are_rows_or_are_refused_by_name(data: bytes) -> None:
    schema = parse_document_schema(
        '{"type": "record", "name": "R", "fields": [{"name": "a", "type": "string", "default": ""}, '
        '{"name": "b", "type": ["null", "string"], "default": null}]}'
    )
    for head in (b"", b"a,b\n", b"b\n"):
        file = cast(BinaryIO, io.BytesIO(head + data))
        try:
            list(csv_chunks(file, "x.csv", Target("a.b", 7, schema, {})))
        except InvalidArgument as refused:
            assert refused.field == "file"
