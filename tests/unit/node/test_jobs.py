"""The leader runs jobs: one step after the other, over changes of leader, and rests while others write."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.declare import IndexDeclaration, PartDeclaration, create_database, create_table
from cortado.store.catalog.descriptors import IndexState
from cortado.store.catalog.registry import register_schema
from cortado.store.clock.timestamp import Timestamp
from cortado.store.host.host import Host
from cortado.store.jobs.job import Job, JobState, job_of, pause, resume
from cortado.store.kv.operations import KvPut, evaluate_put
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.reader import Reader
from cortado.store.replica.duties import jobs
from cortado.store.tables.build import IndexBegun, begin_build, build_step
from cortado.store.tables.bulk import evaluate_bulk
from cortado.store.tables.check import check_step, plan_check
from cortado.store.tables.operations import BulkChunk, BulkMode, JsonRows
from support.node_world import World

SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "int"}]})
ROWS = 100


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "STEP_ROWS", 2)


async def change(node: Host, make: Any) -> Any:
    def evaluate(reader: Reader, commit_ts: Timestamp) -> Evaluation:
        found: Evaluation = make(node.meta.catalog(reader), commit_ts)
        return found

    return (await node.meta.write(evaluate)).value


async def begun(node: Host) -> Job:
    """Begin to build an index of a table with rows, and return its job."""
    key = [PartDeclaration("id")]
    await change(node, lambda catalog, _: create_database(catalog, "db"))
    await change(node, lambda catalog, _: register_schema(catalog, "db.t", SCHEMA))
    await change(node, lambda catalog, ts: create_table(catalog, "db", "t", key=key, commit_ts=ts))
    chunk = BulkChunk("db", "t", JsonRows([json.dumps({"id": n}) for n in range(ROWS)]), BulkMode.UPSERT)
    await change(node, lambda catalog, ts: evaluate_bulk(catalog.reader, ts, catalog, chunk))
    declared = IndexDeclaration("by_id", (PartDeclaration("id", descending=True),))
    reply = await change(node, lambda catalog, ts: begin_build(catalog, ts, "db", "t", declared))
    assert isinstance(reply, IndexBegun)
    return reply.job


def job_at(node: Host, job_id: int) -> Job:
    return job_of(node.meta.reader(node.meta.read_ts()), job_id)


def check_sound(catalog: Catalog, node: Host) -> None:
    [index] = catalog.table("db", "t").indexes
    assert index.state is IndexState.READY
    plan = plan_check(catalog, "db", "t", node.meta.applied.last_ts)
    page = check_step(node.meta.store, plan, None)
    while page.next is not None:
        assert page.problems == []
        page = check_step(node.meta.store, plan, page.next)
    assert page.problems == []


def test_a_job_goes_on_where_the_last_leader_stopped() -> None:
    world = World()

    async def scenario() -> None:
        n1, n2, _ = await world.grow("n1", "n2", "n3")
        job = await begun(n1)
        while job_at(n1, job.job_id).done < ROWS // 3:
            await world.sleep(1)
        await n1.meta.members.transfer("n2")
        before = job_at(n1, job.job_id)
        assert not before.state.has_ended
        while not n2.meta.driver.leadership.is_ready or not job_at(n2, job.job_id).state.has_ended:
            await world.sleep(50)
        after = job_at(n2, job.job_id)
        assert (after.state, after.done, after.total) == (JobState.DONE, ROWS, ROWS)
        assert 0 < n2.meta.jobs.steps <= ROWS // 2
        assert n1.meta.jobs.running == []
        await world.settled()
        check_sound(n2.meta.catalog(n2.meta.reader(n2.meta.read_ts())), n2)

    world.run(scenario)


def test_a_paused_job_does_no_step_until_it_is_resumed() -> None:
    world = World()

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        job = await begun(n1)
        await n1.meta.write(lambda reader, _ts: pause(reader, job.job_id))
        paused = job_at(n1, job.job_id)
        await world.sleep(5_000)
        assert job_at(n1, job.job_id) == paused
        await n1.meta.write(lambda reader, _ts: resume(reader, job.job_id))
        await world.sleep(5_000)
        assert job_at(n1, job.job_id).state is JobState.DONE
        check_sound(n1.meta.catalog(n1.meta.reader(n1.meta.read_ts())), n1)

    world.run(scenario)


@pytest.mark.parametrize(
    ("rows_s", "period_ms"),
    [(1, jobs.REST * 2.0), (25, 80.0), (2_000, jobs.REST_MIN * 2.0)],
    ids=["in proportion", "no longer than leaves it its rows", "and never shorter than others keep four fifths"],
)
def test_a_job_rests_in_proportion_to_what_its_steps_compute_while_others_write_and_not_at_all_otherwise(
    monkeypatch: pytest.MonkeyPatch, rows_s: int, period_ms: float
) -> None:
    monkeypatch.setattr(jobs, "ROWS_S_AIM", rows_s)
    world = World()
    computed_ms = 0.0

    def computing(*arguments: Any) -> Evaluation:
        nonlocal computed_ms
        computed_ms += 2.0
        return build_step(*arguments)

    monkeypatch.setattr(jobs, "build_step", computing)

    async def scenario() -> None:
        [n1] = await world.grow("n1")
        runner = n1.meta.jobs
        monotonic_ms = runner._monotonic_ms
        runner._monotonic_ms = lambda: monotonic_ms() + computed_ms
        job = await begun(n1)
        began_ms = monotonic_ms()
        while monotonic_ms() - began_ms < 1_000:
            await n1.meta.write(lambda reader, ts: evaluate_put(reader, ts, "ns", KvPut(b"key", b"value")))
            await world.sleep(5)
        rested = runner.steps
        assert 1_000 / (period_ms + 8) - 1 <= rested <= 1_000 / period_ms + 2
        while not job_at(n1, job.job_id).state.has_ended:
            await world.sleep(1)
        # It noticed within a moment that the writes had stopped.
        went_on_ms = monotonic_ms() - began_ms - 1_000
        assert went_on_ms < 2 * jobs.LOOK_AROUND_MS + (runner.steps - rested) * 5

    world.run(scenario)
