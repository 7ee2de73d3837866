"""A Spark job reads with its own token: a right that is taken away ends it, and no plan and no error has the token."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession

from cortado.store.client import Client
from support.memory_engine import MemoryEngine
from support.served_node import served_node

pytestmark = pytest.mark.spark

SCHEMA = json.dumps({"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]})
ROWS = 8_000


def test_a_job_whose_right_is_taken_away_ends_with_the_denial(spark: SparkSession) -> None:
    with served_node(MemoryEngine()) as served:
        with Client(served.endpoint) as anybody:
            anybody.create_database("shop")
            anybody.schemas.register("shop.rows", SCHEMA)
            anybody.create_table("shop.rows", key=["id"])
            anybody.table("shop.rows").put_many({"id": number} for number in range(ROWS))
            job = anybody.admin.auth.create("job").token
            anybody.admin.auth.grant("job", "reader", "table:shop.rows")
            root = anybody.admin.auth.enable("root").token
        assert job is not None
        assert root is not None
        options = {"endpoint": served.endpoint, "table": "shop.rows", "token": job.text, "partitions": "4"}
        frame = spark.read.format("cortado").options(**options, hold="false").load()
        plan = frame._jdf.queryExecution().toString()
        # One partition after the other: the next one begins when it is asked for.
        rows = frame.toLocalIterator()
        next(rows)
        with Client(served.endpoint, token=root.text) as admin:
            admin.admin.auth.revoke_grant("job", "reader", "table:shop.rows")
        read = 1
        with pytest.raises(Exception, match=r"reader of table:shop\.rows is needed") as denied:
            for _ in rows:
                read += 1
        assert read < ROWS
        assert job.text not in plan + str(denied.value)
