"""The commands at the top: their modules, and the lines of ``cortado --help``, under five headings.

No command is imported for them: help and completion at the top read this table alone. The whole help fits on one
screen of 50 lines, so related commands share a line; ``HELPS`` has the texts of groups that share one.
"""

from __future__ import annotations

from typing import Final

from cortado.store.cli.tree import Line

HEADINGS: Final = {
    "Run": (
        Line({"server": ("server",)}, "Run a server in the foreground, until Ctrl-C or SIGTERM"),
        Line({"gateway": ("gateway",)}, "Serve documents and pairs over HTTP, and the console"),
        Line(
            {"dev": ("dev", "dev_status", "dev_logs", "dev_faults")},
            "Run a cluster on this machine, for development",
        ),
        Line({"cert": ("cert",)}, "Make certificates for nodes and clients"),
        Line(
            {"config": ("config",), "context": ("context",)}, "Show and check settings; name clusters, and choose one"
        ),
        Line(
            {"shell": ("shell",), "completion": ("completion",)},
            "Run commands at a prompt, or complete them in a shell",
        ),
        Line({"options": ("options",)}, "Explain the options that commands share"),
    ),
    "Data": (
        Line(
            {"get": ("documents",), "put": ("documents",)},
            "Show or store documents by their keys",
        ),
        Line(
            {"update": ("documents",), "add": ("documents",), "delete": ("documents",)},
            "Change a document, add to a number in it, or delete it",
        ),
        Line({"scan": ("documents",)}, "Show, aggregate or count the documents of a key range"),
        Line({"kv": ("kv",), "namespace": ("namespace",)}, "Key-value pairs (bytes to bytes), and namespaces"),
        Line({"now": ("now",)}, "Print a timestamp to read at, again and again"),
        Line({"txn": ("txn",)}, "Transactions over documents and pairs"),
        Line({"watch": ("watch",)}, "Stream changes in commit order, without gaps"),
        Line(
            {"export": ("export",), "import": ("import_",)},
            "Write tables and namespaces to files, or load files",
        ),
    ),
    "Define": (
        Line({"schema": ("schema",)}, "Avro schemas: subjects, versions, compatibility"),
        Line({"db": ("database",), "table": ("table",)}, "Create, list, change and drop databases and tables"),
        Line({"index": ("index",)}, "Create, list and drop indexes of tables in use"),
        Line({"job": ("job",)}, "List, pause, resume and cancel long-running jobs"),
    ),
    "Operate": (
        Line({"status": ("status",), "health": ("health",)}, "Show the state of a cluster, or check that nodes serve"),
        Line({"top": ("top",), "slow": ("slow",)}, "Watch all nodes, or show the calls that took long"),
        Line({"member": ("member", "member_grow")}, "List, add, promote, remove and rebuild members"),
        Line({"auth": ("auth",), "quota": ("quota",)}, "Principals, tokens and roles; limits of use"),
        Line({"backup": ("backup", "backup_restore")}, "Back up a whole cluster, or restore an empty one"),
        Line({"gc": ("gc",), "hold": ("hold",)}, "Collection of old versions, and holds that delay it"),
    ),
    "Repair": (
        Line({"doctor": ("doctor",)}, "Check nodes, this host, data, certificates and logs"),
        Line({"scrub": ("scrub",)}, "Verify all stored data, and compare the replicas"),
        Line({"damage": ("damage",)}, "List damaged data, and accept the loss of it"),
        Line({"clock": ("clock",)}, "The clock of a server; a new epoch, after a wrong one"),
        Line({"recover": ("recover",)}, "Repair a stopped node by hand, when nothing else helps"),
        Line(
            {"debug": ("debug_key", "debug_mvcc", "debug_raft")},
            "Show keys, versions and log entries as they are stored",
        ),
    ),
}
HELPS: Final = {
    "auth principal": "Principals and their tokens.",
    "auth": "Roles: principals, their tokens and their rights.",
    "config": "The settings of servers and of this command line.",
    "context": "Names for clusters and their connection settings.",
    "db": "Databases.",
    "debug key encode": "Print the stored key of a pair, a row or an index entry.",
    "debug key": "Decode and encode stored keys, as logs and errors show them.",
    "debug mvcc": "Show all versions of a key, deleted and damaged ones too.",
    "gc": "Garbage collection of old versions.",
    "hold": "Holds, which keep old versions for their readers.",
    "kv": "Key-value pairs (bytes to bytes) in namespaces.",
    "namespace": "Namespaces of key-value pairs.",
    "quota": "Quotas: limits of use for principals, databases and namespaces.",
    "table": "Tables and their indexes.",
}
