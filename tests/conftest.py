"""Settings that all tests share."""

from __future__ import annotations

import gc
import logging
import os
import signal
from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from support.examples import EXAMPLES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from xdist.remote import Producer
    from xdist.scheduler import LoadScopeScheduling

# A shell that runs the tests in the background lets them ignore Ctrl-C, and with them all that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Before gRPC is loaded: its handlers of fork abort a child now and then, and tests start many processes.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

# What the developer's shell and contexts say must not decide what a test sees.
_OF_CLIENT = {f"CORTADO_{name}" for name in ("ENDPOINTS", "TLS_CA", "TLS_CERT", "TLS_KEY", "TIMEOUT", "OUTPUT")}
_OF_CLIENT |= {"CORTADO_CONFIG", "CORTADO_CONTEXT"}
for _name in [name for name in os.environ if name.startswith("CORTADO_SERVER_") or name in _OF_CLIENT]:
    del os.environ[_name]
os.environ["XDG_CONFIG_HOME"] = "/nonexistent"

# Nothing that is collected becomes garbage, and each worker collects nine thousand tests.
gc.disable()

# The same examples in every run: a property that fails once fails again. Raise HYPOTHESIS_EXAMPLES to search longer.
settings.register_profile(
    "repeatable",
    derandomize=True,
    deadline=None,
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("repeatable")


def pytest_collection_finish() -> None:
    """From here on the collector looks at what tests make, and not at all tests and modules each time."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """A server that a test runs in this process sets up its logs. That ends with the test: later ones would write all
    that they log to a stream that is closed by then, and a traceback for each line."""
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    try:
        return (yield)
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


# What takes minutes begins first, so that no worker is alone with it at the end.
_LONG = (
    "tests/docs/test_pages_with_spark.py",
    "tests/simulation/test_seeds.py",
    "tests/docs/",
    "tests/spark/",
    "tests/simulation/",
    "tests/upgrade/",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The order in which files are handed out."""
    items.sort(key=lambda item: next((at for at, path in enumerate(_LONG) if item.nodeid.startswith(path)), len(_LONG)))


# Each process that runs one of these starts a Spark session: a JVM whose code is cold for the first tests.
_WITH_SPARK = ("tests/docs/test_pages_with_spark.py", "tests/spark/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """File by file, but all that share the Spark session as if they were one file."""
    if config.getvalue("dist") != "loadfile":
        return None
    # Only here: it is there where xdist is.
    from xdist.scheduler import LoadFileScheduling

    class ByFileAndSession(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return "spark" if nodeid.startswith(_WITH_SPARK) else super()._split_scope(nodeid)

    return ByFileAndSession(config, log)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One Spark session for all tests that need one."""
    # Only here: most tests need neither pyspark nor the second that its import takes.
    from support.spark_session import spark_session

    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
