"""The decoder of single documents and the columnar one are two programs with one meaning.

The server checks a body in bulk that a client reads alone: if they disagreed, a row could be stored that no client can
read.
"""

from __future__ import annotations

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from cortado.errors import InvalidDocument
from cortado.schema.columnar.decode import decode_rows
from cortado.schema.documents import decode_document, encode_document
from cortado.schema.parse import parse_document_schema
from support.avro_strategies import declaration_text, document_declarations, values_of


@given(st.data())
def test_both_decoders_read_the_same_document_or_refuse_it_at_the_same_place(data: st.DataObject) -> None:
    schema = parse_document_schema(declaration_text(data.draw(document_declarations())))
    damaged = bytearray(encode_document(schema, data.draw(values_of(schema.root))))
    for _ in range(data.draw(st.integers(0, 2))):
        place = data.draw(st.integers(0, len(damaged)))
        damaged[place : place + data.draw(st.integers(0, 2))] = data.draw(st.binary(max_size=3))
    body = bytes(damaged)
    rows = decode_rows(schema, body, np.array([len(body)], np.uint32))
    try:
        document = decode_document(schema, body)
    except InvalidDocument as refusal:
        event("refused")
        assert rows.errors[0].field == refusal.field
        return
    event("read")
    assert not rows.errors
    # By their text: a damaged float may be NaN, which equals nothing.
    assert repr({name: column.to_pylist()[0] for name, column in rows.columns.items()}) == repr(document)
