"""Acts on databases, tables, indexes and namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from cortado.errors import NotFound
from cortado.store.client.kv import range_of
from cortado.store.client.tables import Index
from cortado.store.clock.retentions import show_retention
from cortado.store.gateway.console.acts.act import (
    Act,
    Done,
    Input,
    Sight,
    Texts,
    in_time,
    listed,
    nothing,
    number,
    optional,
    retention_ms,
    span_ms,
    table_path,
)

if TYPE_CHECKING:
    from cortado.store.catalog.descriptors import TableDescriptor
    from cortado.store.client import AsyncClient

DATA: Final = "/ui/data"
_TABLES_NAMED: Final = 5
_GRACE: Final = "It may be brought back until its grace is over: as long as old versions are kept."


def _data(_target: Texts) -> str:
    return DATA


def _of_table(target: Texts) -> str:
    return table_path(target["table"])


# --- databases ------------------------------------------------------------------------------------------------------


async def _database(client: AsyncClient, target: Texts) -> Sight:
    tables = await client.tables(target["database"])
    names = [each.name for each in tables]
    more = len(names) - _TABLES_NAMED
    told = ", ".join(names[:_TABLES_NAMED]) + (f" and {more} more" if more > 0 else "")
    facts = (("Database", target["database"]), ("Tables", f"{len(names)}: {told}" if names else "none"))
    return Sight(facts, " ".join(f"{each.table_id}" for each in tables))


async def _create_database(client: AsyncClient, _target: Texts, given: Texts) -> Done:
    name = given["database"].strip()
    await client.create_database(name)
    return Done(f"Database {name} was created.", DATA)


async def _drop_database(client: AsyncClient, target: Texts, given: Texts) -> Done:
    found = await client.drop_database(target["database"], cascade=given["cascade"] == "on")
    with_it = f" with {len(found.tables)} tables" if found.tables else ""
    return Done(f"Database {target['database']} was dropped{with_it}.", DATA)


# --- tables ---------------------------------------------------------------------------------------------------------


async def _table(client: AsyncClient, target: Texts) -> Sight:
    found = await client.describe(target["table"])
    return Sight(
        (
            ("Table", found.full_name),
            ("Key", ", ".join(each.path for each in found.key)),
            ("Indexes", ", ".join(each.name for each in found.indexes) or "none"),
            ("Named so since", found.named_ts.as_datetime().strftime("%Y-%m-%d %H:%M:%S UTC")),
        ),
        _same(found),
        {
            "retention": show_retention(found.retention_ms) if found.retention_ms else "",
            "ttl": show_retention(found.ttl_ms) if found.ttl_ms else "",
            "name": found.name,
        },
    )


def _same(found: TableDescriptor) -> str:
    return f"{found.table_id} {found.named_ts} {found.version}"


async def _index(client: AsyncClient, target: Texts) -> Sight:
    found = await client.describe(target["table"])
    index = found.index(target["index"])
    if index is None:
        raise NotFound("index", f"{target['index']} of table {target['table']}")
    parts = ", ".join(f"{each.path} desc" if each.descending else each.path for each in index.parts)
    facts = (("Table", found.full_name), ("Index", index.name), ("Parts", parts), ("State", str(index.state)))
    return Sight(facts, f"{found.table_id} {index.index_id}")


async def _create_table(client: AsyncClient, _target: Texts, given: Texts) -> Done:
    made = await client.create_table(
        f"{given['database'].strip()}.{given['name'].strip()}",
        listed(given["key"]),
        subject=optional(given["subject"]),
        retention_ms=retention_ms(given["retention"], "retention"),
        ttl_ms=span_ms(given["ttl"], "ttl"),
    )
    return Done(f"Table {made.full_name} was created.", table_path(made.full_name))


async def _alter_table(client: AsyncClient, target: Texts, given: Texts) -> Done:
    found = await client.alter_table(
        target["table"],
        retention_ms=retention_ms(given["retention"], "retention"),
        ttl_ms=span_ms(given["ttl"], "ttl"),
    )
    return Done(f"Table {found.full_name} was altered.", table_path(found.full_name))


async def _rename_table(client: AsyncClient, target: Texts, given: Texts) -> Done:
    found = await client.rename_table(target["table"], given["name"].strip())
    return Done(f"Table {target['table']} is called {found.full_name}.", table_path(found.full_name))


async def _truncate_table(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    record = await client.truncate_table(target["table"])
    return Done(f"Table {target['table']} is empty. What it held is drop number {record.number}.", _of_table(target))


async def _drop_table(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    record = await client.drop_table(target["table"])
    return Done(f"Table {target['table']} was dropped, as drop number {record.number}.", DATA)


async def _check_table(client: AsyncClient, target: Texts, given: Texts) -> Done:
    table, repairs = target["table"], given["repair"] == "on"
    problem = f"the table has more rows than a page waits for; without that bound: cortado table verify-indexes {table}"
    found = await in_time(client.verify_indexes(table, repair=repairs), problem)
    told = f"{found.rows_checked:,} rows and {found.entries_checked:,} entries of indexes were read"
    if not found.problems:
        return Done(f"Table {table} is sound: {told}.", _of_table(target))
    first = found.problems[0]
    put_right = f"; {found.repaired:,} entries were put right, {found.left:,} could not be" if repairs else ""
    where = f" of index {first.index}" if first.index else ""
    return Done(
        f"Table {table} has {len(found.problems):,} problems{put_right}. The first is {first.kind}{where} at key "
        f"{first.key}: {first.message}. {told}.",
        _of_table(target),
    )


async def _create_index(client: AsyncClient, target: Texts, given: Texts) -> Done:
    index = Index(given["name"].strip(), listed(given["parts"]), unique=given["unique"] == "on")
    found = await client.create_index(target["table"], index, wait=False)
    return Done(f"Index {found.name} of {target['table']} is {found.state}.", _of_table(target))


async def _drop_index(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    await client.drop_index(target["table"], target["index"])
    return Done(f"Index {target['index']} of {target['table']} was dropped.", _of_table(target))


# --- namespaces, and dropped tables and namespaces ------------------------------------------------------------------


async def _namespace(client: AsyncClient, target: Texts) -> Sight:
    pairs = client.kv(target["namespace"])
    page, _ = await pairs._open_page(range_of(b"", b"", None), b"", rows_max=1, reverse=False, at=None, keys_only=True)
    if not page:
        raise NotFound("namespace", target["namespace"])
    return Sight((("Namespace", target["namespace"]),), "")


async def _drop_namespace(client: AsyncClient, target: Texts, _given: Texts) -> Done:
    record = await client.drop_namespace(target["namespace"])
    return Done(f"Namespace {target['namespace']} was dropped, as drop number {record.number}.", DATA)


async def _dropped(client: AsyncClient, target: Texts) -> Sight:
    wanted = number(target["number"], "number")
    found = next((each for each in await client.dropped() if each.number == wanted), None)
    if found is None:
        raise NotFound("drop", target["number"])
    facts = (("Was", f"{found.kind} {found.name}"), ("Dropped", str(found.ts)), ("Number", str(found.number)))
    return Sight(facts, f"{found.kind} {found.name} {found.ts}", {"name": found.name.rpartition(".")[2]})


async def _undrop(client: AsyncClient, target: Texts, given: Texts) -> Done:
    wanted = number(target["number"], "number")
    found = next((each for each in await client.dropped() if each.number == wanted), None)
    if found is None:
        raise NotFound("drop", target["number"])
    as_name = optional(given["name"])
    match found.kind:
        case "database":
            back = await client.undrop_database(found.name, as_name=as_name, number=wanted)
            return Done(f"Database {back.database} is back, with {len(back.tables)} tables.", DATA)
        case "namespace":
            await client.undrop_namespace(found.name, number=wanted)
            return Done(f"Namespace {found.name} is back.", DATA)
        case "index":
            raise NotFound("drop that can be brought back", target["number"])
        case _:
            table = await client.undrop_table(found.name, as_name=as_name, number=wanted)
            return Done(f"Table {table.full_name} is back, with its rows.", table_path(table.full_name))


_RETENTION: Final = Input(
    "retention", "Old versions are kept for", hint="such as 12h, 7d or all; empty: as the cluster"
)
_TTL: Final = Input("ttl", "Rows expire after", hint="such as 12h or 7d; empty: never")

ACTS: Final = (
    Act(
        "create-database", "Create a database", "Create it", "A database holds tables.",
        nothing, _create_database, _data,
        inputs=(Input("database", "Name", hint="such as shop", required=True),),
    ),
    Act(
        "drop-database", "Drop a database", "Drop it", _GRACE, _database, _drop_database, _data, ("database",),
        (Input("cascade", "With its tables", "flag"),), "database",
    ),
    Act(
        "create-table", "Create a table", "Create it", "Its rows follow a schema that is registered already.",
        nothing, _create_table, _data,
        inputs=(
            Input("database", "Database", hint="such as shop", required=True),
            Input("name", "Name", hint="such as orders", required=True),
            Input("key", "Key", hint="fields with commas between them, such as region, created desc", required=True),
            Input("subject", "Subject of its schema", hint="empty: DATABASE.NAME"),
            _RETENTION,
            _TTL,
        ),
    ),
    Act(
        "alter-table", "Alter a table", "Alter it",
        "Where old versions are kept for less time than before, those that are older are collected and cannot be read "
        "any more.",
        _table, _alter_table, _of_table, ("table",), (_RETENTION, _TTL),
    ),
    Act(
        "rename-table", "Rename a table", "Rename it",
        "Callers that use the old name find no table. Rights are on names: those of the new name count then.",
        _table, _rename_table, _of_table, ("table",), (Input("name", "New name", required=True),),
    ),
    Act(
        "truncate-table", "Truncate a table", "Empty it",
        f"All of its rows are gone at once. {_GRACE}",
        _table, _truncate_table, _of_table, ("table",), typed="table",
    ),
    Act("drop-table", "Drop a table", "Drop it", _GRACE, _table, _drop_table, _of_table, ("table",), typed="table"),
    Act(
        "check-table", "Check a table", "Check it",
        "Reads all rows and verifies that each index agrees with them exactly. A repair puts missing entries and "
        "deletes stray ones; rows stay as they are.",
        _table, _check_table, _of_table, ("table",), (Input("repair", "Repair the indexes", "flag"),),
    ),
    Act(
        "create-index", "Create an index", "Create it",
        "The table may be read and written meanwhile. Where it has rows, a job builds the index from them.",
        _table, _create_index, _of_table, ("table",),
        (
            Input("name", "Name of the index", hint="such as by_customer", required=True),
            Input("parts", "Fields", hint="with commas between them, such as customer, created desc", required=True),
            Input("unique", "No two rows may share a value", "flag"),
        ),
    ),
    Act(
        "drop-index", "Drop an index", "Drop it",
        "Queries by it fail at once. It can be created anew, which reads all rows.",
        _index, _drop_index, _of_table, ("table", "index"), typed="index",
    ),
    Act(
        "drop-namespace", "Drop a namespace", "Drop it", f"All of its pairs are gone at once. {_GRACE}",
        _namespace, _drop_namespace, _data, ("namespace",), typed="namespace",
    ),
    Act(
        "undrop", "Bring back a dropped thing", "Bring it back", "It comes back with all its data.",
        _dropped, _undrop, _data, ("number",),
        (Input("name", "Under the name", hint="of a namespace: its own"),),
    ),
)  # fmt: skip
