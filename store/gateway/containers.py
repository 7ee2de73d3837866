"""A stream of documents as one Avro object container file (:mod:`cortado.store.transfer.avro_file`).

All documents are written in one schema: the table's newest when the stream begins, or the version in ``schemaVersion``.
If the stream fails after it has begun, the connection is cut, so that no reader takes the rest for a whole file.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing
from io import BytesIO
from typing import Final

from starlette.responses import Response

from cortado.errors import CortadoError
from cortado.schema.documents import encode_document
from cortado.schema.limits import READ_BYTES_MAX
from cortado.schema.model import Schema
from cortado.store.client.documents import Document
from cortado.store.gateway.calls import Call
from cortado.store.gateway.streams import Stream, StreamCut, begun, check_stream
from cortado.store.transfer.avro_file import ContainerWriter
from cortado.store.transfer.formats import Compression

_LOG: Final = logging.getLogger(__name__)

CONTAINER: Final = "application/avro"
PIECE_BYTES: Final = 64 << 10

Pages = AsyncGenerator[Iterable[Document], None]


async def container_response(call: Call, schema: Schema, pages: Pages) -> Response:
    """Return all documents of ``pages``. Waits for the first page, so that an immediate refusal gets a problem."""
    check_stream(call)
    return Stream(call.bounds, _pieces(call, schema, await begun(pages)), CONTAINER)


async def _pieces(call: Call, schema: Schema, pages: Pages) -> AsyncGenerator[bytes, None]:
    written = BytesIO()
    file = ContainerWriter(written, schema.text, Compression.NONE, name=secrets.token_hex(), metadata={})

    def add(document: Document) -> None:
        file.add(encode_document(schema, document.value, bytes_max=READ_BYTES_MAX), 1)

    async with aclosing(pages):
        try:
            async for page in pages:
                # By map, so that no frame keeps a document while a piece waits to be sent.
                for _ in map(add, page):
                    if written.tell() >= PIECE_BYTES:
                        yield _taken(written)
        except CortadoError as error:
            _LOG.warning("a stream of %s ended early: %s", call.operation.path, error)
            raise StreamCut from error
    file.close()
    yield _taken(written)


def _taken(written: BytesIO) -> bytes:
    piece = written.getvalue()
    written.seek(0)
    written.truncate()
    return piece
