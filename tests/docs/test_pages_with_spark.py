"""As test_pages.py, for the pages whose code finds a Spark session: they take minutes, and run beside the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from support.page_runner import run_page
from support.pages import Page, all_pages

pytestmark = [pytest.mark.long, pytest.mark.process, pytest.mark.spark]


@pytest.mark.parametrize("page", [p for p in all_pages() if p.is_run and p.wants_spark], ids=lambda p: p.name)
def test_the_blocks_of_a_page_run(page: Page, tmp_path: Path, spark: SparkSession) -> None:
    run_page(page, tmp_path, {"spark": spark})
