"""Tables to import into: found, or made from the description in an export or an Avro file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from cortado.errors import AlreadyExists, InvalidArgument, NotFound
from cortado.schema.compatibility import CompatibilityMode
from cortado.schema.parse import parse_document_schema, parse_schema
from cortado.store.catalog.descriptors import TableDescriptor
from cortado.store.client import Client, Index
from cortado.store.keys.names import split_table_name
from cortado.store.transfer.avro_file import Container
from cortado.store.transfer.files import open_to_read
from cortado.store.transfer.formats import Format
from cortado.store.transfer.manifest import SubjectEntry
from cortado.store.transfer.parquet_source import parquet_file
from cortado.store.transfer.rows import Target
from cortado.store.transfer.writers import SCHEMA_KEY


def table_target(client: Client, full_name: str) -> Target:
    """Return the target of a table's rows: its subject's newest version. Raises NotFound."""
    subject = client.describe(full_name).subject
    versions = client.schemas.versions(subject)
    ids = {parse_schema(each.schema).fingerprint: each.schema_id for each in versions}
    version, schema = client.table(full_name).codec.schema()
    return Target(full_name, version.schema_id, schema, ids)


def future_target(full_name: str, schema_text: str) -> Target:
    """Return the target of a table that is not made yet: for a rehearsal."""
    schema = parse_document_schema(schema_text)
    return Target(full_name, 0, schema, {})


def schema_in_file(path: Path, format: Format) -> str | None:
    """Return the Avro schema that a file brings with it: an Avro file's own, or the one that we left in a Parquet
    file."""
    with closing(open_to_read(path)) as file:
        match format:
            case Format.AVRO:
                return Container(file, str(path)).schema.text
            case Format.PARQUET:
                metadata = parquet_file(file, str(path)).schema_arrow.metadata or {}
                found = metadata.get(SCHEMA_KEY.encode())
                return None if found is None else str(found.decode())
            case _:
                return None


def make_table(
    client: Client, full_name: str, key: Sequence[str], indexes: Sequence[Index], schema_text: str | None
) -> TableDescriptor:
    """Return the table, made if it is not there: its database, and its subject's schema, too.

    Raises InvalidArgument if there is neither a schema nor a subject, or a table with another key.
    """
    found = find_table(client, full_name)
    if found is not None:
        if key and list(key) != key_paths(found):
            problem = f"must be that of the table there is: {', '.join(key_paths(found))}"
            raise InvalidArgument("--key", problem, ", ".join(key))
        return found
    if not key:
        raise InvalidArgument("--key", f"must be given: there is no table {full_name} yet")
    make_database(client, split_table_name(full_name)[0])
    if schema_text is not None:
        client.schemas.register(full_name, schema_text)
    elif full_name not in {each.subject for each in client.schemas.subjects()}:
        raise InvalidArgument("--schema", f"must be given: there is no subject {full_name}, and no schema in the file")
    return client.create_table(full_name, key, indexes=indexes)


def make_database(client: Client, name: str) -> None:
    """Make a database, unless it is there."""
    if name not in client.databases():
        with suppress(AlreadyExists):  # Another client was faster.
            client.create_database(name)


def find_table(client: Client, full_name: str) -> TableDescriptor | None:
    """Return the table, or None."""
    try:
        return client.describe(full_name)
    except NotFound:
        return None


def key_paths(table: TableDescriptor) -> list[str]:
    """Return the parts of a table's key, as they are declared."""
    return [f"{part.path} desc" if part.descending else part.path for part in table.key]


def restore_subject(client: Client, entry: SubjectEntry, name: str) -> None:
    """Registers all versions of a subject under ``name``, and sets its mode; changes nothing if it has them.

    Raises AlreadyExists if the subject holds other schemas.
    """
    there: list[str] = []
    with suppress(NotFound):
        there = [each.schema for each in client.schemas.versions(name)]
    wanted = [_fingerprint(each) for each in entry.schemas]
    if [_fingerprint(each) for each in there] != wanted[: len(there)]:
        raise AlreadyExists("subject", f"{name}, with other schemas,")
    for number, schema in enumerate(entry.schemas):
        if number < len(there):
            continue
        if number:
            # The modes under which they followed each other are not in the export.
            client.schemas.set_compatibility(name, CompatibilityMode.NONE)
        client.schemas.register(name, schema)
    client.schemas.set_compatibility(name, entry.compatibility)


def _fingerprint(text: str) -> bytes:
    return parse_schema(text).fingerprint
