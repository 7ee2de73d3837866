"""Words of other systems, and words that have moved: their refusal suggests the word that the command has here.

A word may mean several of ours; the first one that the command has is suggested.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from cortado.store.settings.gather import nearest

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    # conditions and columns: SQL, MongoDB, DynamoDB
    "--where": ("--filter",),
    "--condition": ("--filter", "--if-etag"),
    "--query": ("--filter",),
    "--predicate": ("--filter",),
    "--select": ("--columns",),
    "--fields": ("--columns",),
    "--projection": ("--columns",),
    "--having": ("--filter",),
    "--aggregation": ("--aggregate",),
    # how much, and in which order
    "--top": ("--limit",),
    "--head": ("--limit",),
    "--max-items": ("--limit",),
    "--count": ("--limit",),
    "--count-only": ("--count",),
    "--size": ("--limit",),
    "--desc": ("--reverse",),
    "--descending": ("--reverse",),
    "--order-by": ("--index",),
    "--sort": ("--index",),
    "--sort-by": ("--index",),
    "--prefix": ("--start",),
    "--format": ("--output",),
    # ranges
    "--start": ("--after",),
    "--from": ("--start", "--after"),
    "--begin": ("--start", "--after"),
    "--lower": ("--start",),
    "--end": ("--until",),
    "--to": ("--end", "--until"),
    "--stop": ("--end", "--until"),
    "--upper": ("--end",),
    # time: etcd, CockroachDB, Delta
    "--rev": ("--at", "--after"),
    "--revision": ("--at", "--after"),
    "--as-of": ("--at",),
    "--timestamp": ("--at", "--after"),
    "--snapshot": ("--at",),
    "--since": ("--after",),
    "--follow": ("--state",),
    "--prev-kv": ("--previous",),
    # writes: Redis, etcd, DynamoDB
    "--expire": ("--ttl", "--expires"),
    "--expiry": ("--ttl", "--expires"),
    "--ex": ("--ttl",),
    "--px": ("--ttl",),
    "--nx": ("--if-absent",),
    "--xx": ("--if-present",),
    "--if-not-exists": ("--if-absent",),
    "--if-exists": ("--if-present",),
    "--mode": ("--if-absent",),
    "--etag": ("--if-etag",),
    "--if-match": ("--if-etag",),
    "--delta": ("--by",),
    "--increment": ("--by",),
    "--amount": ("--by",),
    "--column": ("--field",),
    "--value": ("--by", "--set"),
    "--primary-key": ("--key",),
    "--pk": ("--key",),
    "--force": ("--yes",),
    "--no-confirm": ("--yes",),
    "--dryrun": ("--dry-run",),
    "--cluster": ("--dev",),
    # endpoints and credentials: etcd, psql, curl, kubectl
    "--endpoints": ("--endpoint",),
    "--host": ("--endpoint",),
    "--hosts": ("--endpoint",),
    "--server": ("--endpoint",),
    "--url": ("--endpoint",),
    "--address": ("--endpoint", "--listen"),
    "--bootstrap-server": ("--endpoint",),
    "--cacert": ("--tls-ca",),
    "--ca-file": ("--tls-ca",),
    "--cert": ("--tls-cert",),
    "--cert-file": ("--tls-cert",),
    "--key": ("--tls-key",),
    "--key-file": ("--tls-key",),
    "--token": ("--token-file",),
    "--password": ("--token-file",),
    "--user": ("--token-file",),
    "--username": ("--token-file",),
    "--profile": ("--context",),
    "--json": ("--output",),
    "--write-out": ("--output",),
    "--command-timeout": ("--timeout",),
}

COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "select": ("scan",),
    "find": ("scan",),
    "query": ("scan",),
    "range": ("scan",),
    "insert": ("put",),
    "upsert": ("put",),
    "set": ("put",),
    "save": ("put",),
    "rm": ("delete", "remove", "drop"),
    "del": ("delete", "remove", "drop"),
    "remove": ("delete", "drop"),
    "delete": ("drop", "remove"),
    "incr": ("add",),
    "incrby": ("add",),
    "increment": ("add",),
    "modify": ("update", "alter"),
    "subscribe": ("watch",),
    "tail": ("watch",),
    "dump": ("export",),
    "load": ("import",),
    "copy": ("import",),
    "ls": ("list",),
    "show": ("list", "describe", "status"),
    "info": ("status", "describe"),
    "start": ("server", "up"),
    "stop": ("down",),
    "nodes": ("member",),
    "database": ("db",),
    "keyspace": ("db",),
    "tables": ("table",),
    "create": ("table",),
    "drop": ("table",),
    "describe": ("table",),
    "users": ("auth",),
    "user": ("auth",),
    "repl": ("shell",),
    "cli": ("shell",),
    "check": ("doctor",),
    "version": ("--version",),
}

MOVED: Final[Mapping[str, str]] = {
    "clock now": "now",
    "cluster": "dev",
    "count": "scan --count",
    "key": "debug key",
    "kv cas": "kv put --if-value",
    "kv drop": "namespace drop",
    "kv list": "namespace list",
    "kv undrop": "namespace undrop",
    "lease": "hold",
    "mvcc": "debug mvcc",
    "quota show": "quota list",
    "raft": "debug raft",
    "restore": "backup restore",
    "schema check": "schema test-compatibility",
    "schema default-compatibility": "schema compatibility --default",
    "table check": "table verify-indexes",
}
"""Words that once began a command, and the words that begin it now."""


def meant(word: str, words: Mapping[str, tuple[str, ...]], there: Collection[str]) -> str:
    """Return the word of ``there`` for ``word``: its name here, or the nearest name. Empty for none."""
    known = next((each for each in words.get(word, ()) if each in there), "")
    return known or nearest(word, there)
