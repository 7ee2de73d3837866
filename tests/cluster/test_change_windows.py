"""Windows of changes at three nodes: a stream in batches and parts, on over a killed leader, misses nothing."""

from __future__ import annotations

import asyncio
import random

import pytest

from cortado.store.client import AsyncClient, Changed, Client, Deleted, Index, Resolved
from support.cluster import Cluster

pytestmark = pytest.mark.process

SCHEMA = {"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}, {"name": "n", "type": "long"}]}


def test_batches_in_parts_are_all_changes_once_over_a_killed_leader(three_nodes: Cluster) -> None:
    draw = random.Random(7)
    with Client(three_nodes.endpoints, timeout_s=60) as client:
        client.create_database("windows")
        client.schemas.register("windows.t", SCHEMA)
        client.create_table("windows.t", ["id"], indexes=[Index("by_n", ["n"])])
        table = client.table("windows.t")
        began = place = client.now()
        written: list[tuple[str, int]] = []
        seen: list[tuple[str, int]] = []
        repeated = 0
        for turn in range(12):
            numbers = draw.sample(range(100), 20)
            table.put_many({"id": each, "n": turn} for each in numbers)
            gone = draw.choice(numbers)
            table.delete(gone)
            written += [*(("put", each) for each in numbers), ("delete", gone)]
            if turn == 6:
                three_nodes.kill(three_nodes.leader())
            window = table.window(after=place, changes_max=15, parts=3)
            again = table.window(after=place, until=window.until, changes_max=15, parts=3)
            repeated += again == window
            seen += taken(table, place, window)
            place = window.until
        while (window := table.window(after=place)).changes:
            seen += taken(table, place, window)
            place = window.until
        assert repeated == 12
        assert sorted(seen) == sorted(written)
        with table.watch(after=began, until=place) as watch:
            assert sum(isinstance(each, Changed | Deleted) for each in watch) == len(seen)


def taken(table, place, window):  # type: ignore[no-untyped-def]
    """The changes of a window, part by part."""
    found = []
    for part in window.ranges:
        with table.watch(part.start, part.end, after=place, until=window.until) as watch:
            of_part = [
                ("put" if isinstance(each, Changed) else "delete", each.key[0])
                for each in watch
                if isinstance(each, Changed | Deleted)
            ]
        assert len(of_part) == part.changes
        found += of_part
    assert len(found) == window.changes
    return found


def test_windows_of_pairs_with_asyncio(three_nodes: Cluster) -> None:
    async def scenario() -> None:
        async with AsyncClient(three_nodes.endpoints) as client:
            pairs = client.kv("windows")
            began = await client.now()
            for number in range(10):
                await pairs.put(b"k%d" % number, b"v" * 100)
            window = await pairs.window(b"k", b"l", after=began, bytes_max=500, parts=2)
            assert window.changes == 3
            assert [(each.start, each.end, each.changes) for each in window.ranges] == [
                (b"k", b"k1", 1),
                (b"k1", b"l", 2),
            ]
            async with pairs.progress(prefix=b"k", after=began, until=window.until) as progress:
                events = [event async for event in progress]
            assert {type(event) for event in events} == {Resolved}
            assert events[-1].ts == window.until
            rest = await pairs.window(after=window.until)
            assert (rest.changes, rest.ranges[0].start, rest.ranges[0].end) == (7, None, None)

    asyncio.run(scenario())
