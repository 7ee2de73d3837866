"""The connection of a Spark session: its settings ``spark.cortado.endpoint``, ``.token`` and so on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOKENS: Final = ("token", "tokenFile")
NAMES: Final = ("endpoint", *TOKENS, "tlsCa", "tlsCert", "tlsKey")


def with_defaults(spark: SparkSession, given: Mapping[str, str]) -> dict[str, str]:
    """Return the options, and without an endpoint among them those of the session's connection, too.

    With an endpoint the session's are ignored: its token goes to the cluster that the session names, and to no other.
    A token of the call's, or its file, takes the place of both.
    """
    if "endpoint" in given or spark.conf.get("spark.cortado.endpoint", None) is None:
        return dict(given)
    names = [name for name in NAMES if name not in TOKENS] if any(name in given for name in TOKENS) else NAMES
    found = {name: spark.conf.get(f"spark.cortado.{name}", None) for name in names}
    return {**{name: value for name, value in found.items() if value is not None}, **given}
