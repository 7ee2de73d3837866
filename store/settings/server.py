"""The settings of a server: the one table of them.

Flags, variables, files, refusals, ``config show`` and docs/configuration.md all come from it. Conditions between
two settings are in :meth:`cortado.store.server.config.ServerConfig.check`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from cortado.raft.settings import ENTRY_BYTES_LIMIT, RaftSettings
from cortado.store.process.limits import COMMAND_BYTES_MIN, NodeLimits
from cortado.store.settings.kinds import ADDRESS, ADDRESSES, FLAG, PATH, RETENTION, SIZE, TEXT, WHOLE, Kind, choice
from cortado.store.settings.logs import log_settings
from cortado.store.settings.setting import Setting

PREFIX: Final = "CORTADO_SERVER_"
CONFIG_VARIABLE: Final = f"{PREFIX}CONFIG"

NODE: Final = "The node"
CLUSTER: Final = "The cluster"
SECURITY: Final = "Security"
TIMERS: Final = "Bounds and timers"
LIMITS: Final = "Limits of a node"
RAFT: Final = "Replication"
OBSERVING: Final = "Observing"
TESTS: Final = "For tests only"

REQUIRED: Final = "required"
NONE: Final = "none"
"""A value of ``client-certificates``."""
NATIVE: Final = "native"
"""A value of ``front``."""

COUNT_MAX: Final = 1_000_000_000
BYTES_MAX: Final = 1 << 40
CLOCK_OFFSET_MS_MAX: Final = 50 * 365 * 86_400_000


def _limit(name: str, meaning: str, kind: Kind = WHOLE, unit: str = "", low: int = 1, high: int = 0) -> Setting:
    """``name`` is a field of NodeLimits, which has the default."""
    default = getattr(NodeLimits(), name)
    high = high or _most(kind)
    return Setting(f"limit.{name.replace('_', '-')}", kind, default, meaning, LIMITS, unit, low=low, high=high)


def _raft(name: str, meaning: str, kind: Kind = WHOLE, unit: str = "", low: int = 0, high: int = 0) -> Setting:
    """``name`` is a field of RaftSettings, which has the default."""
    default = getattr(RaftSettings(), name)
    high = high or _most(kind)
    return Setting(f"raft.{name.replace('_', '-')}", kind, default, meaning, RAFT, unit, low=low, high=high)


def _most(kind: Kind) -> int:
    return BYTES_MAX if kind is SIZE else COUNT_MAX


def _number(name: str, default: Any, meaning: str, group: str, low: int, high: int, **more: Any) -> Setting:
    return Setting(name, WHOLE, default, meaning, group, unit="ms", low=low, high=high, metavar="MS", **more)


SETTINGS: Final[tuple[Setting, ...]] = (
    Setting(
        "data-dir",
        PATH,
        Path("cortado-data"),
        "Directory of all durable data; created at the first start. Only one process at a time may use it.",
        NODE,
    ),
    Setting(
        "listen",
        ADDRESS,
        "127.0.0.1:7621",
        "Address to serve on. Port 0 takes a free port.",
        NODE,
        bound="a loopback address, unless there are certificates or insecure is true",
    ),
    Setting(
        "peer-listen",
        ADDRESS,
        "",
        "Address to serve the other nodes on, and only them. Port 0 takes a free port.",
        NODE,
        bound="another address than listen, and as that one a loopback address, unless there are certificates or "
        "insecure is true",
        default_text="the host of listen and its port + 1",
    ),
    Setting(
        "front",
        choice(NATIVE, "grpc"),
        NATIVE,
        "The front for clients: the native front, or the gRPC library. Calls of the library cost several times as "
        "much, and it bounds its connections less.",
        NODE,
    ),
    Setting(
        "port-file",
        PATH,
        None,
        "Write the address to this file when the node serves, for scripts.",
        NODE,
        bound="in a directory that exists",
        default_text="nowhere",
    ),
    Setting(
        "verify",
        FLAG,
        False,
        "Check every page of the data file before serving. Without it, a file of more than 2 GiB has its inner pages "
        "checked, and about 2 GiB of the others.",
        NODE,
    ),
    Setting(
        "scan-kernel",
        choice("auto", "off"),
        "auto",
        "The code that reads many rows: the compiled scan kernel if it can run (about 115 MiB of memory); off: Python.",
        NODE,
    ),
    Setting(
        "map-size",
        SIZE,
        None,
        "Maximum size of the data. This is address space, not disk: the file grows with its data.",
        NODE,
        low=1 << 20,
        high=1 << 46,
        default_text="256GiB, or what the process may map",
    ),
    Setting(
        "advertise",
        ADDRESS,
        "",
        "Address where clients reach this node.",
        CLUSTER,
        bound="required if listen is a wildcard address",
        default_text="the address of listen",
    ),
    Setting(
        "peer-advertise",
        ADDRESS,
        "",
        "Address where the other nodes reach this node.",
        CLUSTER,
        bound="required if peer-listen is a wildcard address and advertise is not given",
        default_text="the address of peer-listen, with the host of advertise if that is given",
    ),
    Setting(
        "node-id",
        TEXT,
        "",
        "This node's name in the cluster. It never changes.",
        CLUSTER,
        bound="at most 64 letters, digits, '_', '.' and '-'",
        metavar="ID",
        default_text="from the data directory; at the first start a random one",
    ),
    Setting(
        "join",
        ADDRESSES,
        (),
        "Join the cluster of the nodes with these addresses for peers, after cortado member add has added this node "
        "there. Ignored once joined.",
        CLUSTER,
        default_text="start a new cluster of one node",
    ),
    Setting(
        "found-cluster",
        FLAG,
        False,
        "Set it on exactly one node: with an empty data directory, found the cluster once all nodes of join report "
        "that they belong to none; otherwise join theirs.",
        CLUSTER,
        bound="with join",
    ),
    _number(
        "join-timeout-ms", 60_000, "How long a joining node looks for the leader of its cluster.", CLUSTER, 1, 3_600_000
    ),
    Setting(
        "cluster-id",
        TEXT,
        "",
        "Name of the cluster; taken at the first start only.",
        CLUSTER,
        bound="at most 100 printable ASCII characters",
        metavar="NAME",
        default_text="from the data directory; at the first start a random one",
    ),
    Setting(
        "tls-cert",
        PATH,
        None,
        "This node's certificate. With it, nodes and clients must show one, too. Reloaded on change.",
        SECURITY,
        bound="tls-cert, tls-key and tls-ca: all three, or none",
        metavar="PEM",
    ),
    Setting("tls-key", PATH, None, "The certificate's private key.", SECURITY, bound="as tls-cert", metavar="PEM"),
    Setting(
        "tls-ca",
        PATH,
        None,
        "The certificate authority (CA) that signed the certificates of all nodes and clients.",
        SECURITY,
        bound="as tls-cert",
        metavar="PEM",
    ),
    Setting(
        "client-certificates",
        choice(REQUIRED, NONE),
        REQUIRED,
        "Whether clients must show a certificate. With none, tokens alone identify callers, and every call is refused "
        "while roles are off. Nodes always show theirs.",
        SECURITY,
        bound="none only with tls-cert",
    ),
    Setting(
        "insecure",
        FLAG,
        False,
        "Allow an address that is not loopback without certificates: no encryption, no authentication.",
        SECURITY,
        bound="not together with tls-cert",
    ),
    _number(
        "max-clock-offset-ms",
        250,
        "How far a timestamp from outside may be ahead of this node's clock, and how far a leader's clock may be from "
        "most other nodes' clocks before it gives up leadership.",
        TIMERS,
        1,
        60_000,
    ),
    _number(
        "stop-grace-ms",
        5_000,
        "How long calls in flight may continue after the server is told to stop.",
        TIMERS,
        0,
        600_000,
    ),
    _number(
        "heartbeat-ms", 100, "Interval of a leader's heartbeats. All nodes should have the same.", TIMERS, 10, 10_000
    ),
    _number(
        "election-ms",
        700,
        "Shortest time without a leader after which a node starts an election; the longest is 13/7 of it. All nodes "
        "should have the same.",
        TIMERS,
        40,
        60_000,
        bound="at least four times heartbeat-ms",
    ),
    Setting(
        "lease",
        FLAG,
        False,
        "The leader answers reads without asking the others, for a little less than election-ms after a majority last "
        "answered it. Safe only if no host's clock runs faster than another's by more than raft.max-drift-ppm; a host "
        "that breaks this can return stale data.",
        TIMERS,
    ),
    Setting(
        "retention",
        RETENTION,
        3_600_000,
        "How long old versions are kept, so how far back reads and watches may go; a table may have its own. The "
        "leader's counts: give all nodes the same. all: for ever, and the data only grows.",
        NODE,
    ),
    _limit(
        "in_flight_bytes_max",
        "Approximate memory for everything in flight: requests until they are answered, chunks of bulk streams, "
        "entries until they are applied. Beyond it calls are refused, and chunks wait.",
        SIZE,
    ),
    _limit("kept_bytes_max", "Bytes of it that may hold columns for later aggregates, while free.", SIZE, low=0),
    _limit("writes_max", "Writes in flight. More are refused, with a delay to wait before the next attempt."),
    _limit("write_bytes_max", "Bytes of the requests of all writes in flight. More are refused.", SIZE),
    _limit("reads_max", "Single reads in flight. More are refused."),
    _limit(
        "scans_max",
        "Streamed scans and table checks in flight. One caller may hold as many as it leaves free. More are refused.",
    ),
    _limit("bulk_streams_max", "Bulk streams in flight. A caller may hold as many as it leaves. More are refused."),
    _limit("bulk_chunks_max", "Chunks in flight on each bulk stream. More wait."),
    _limit("batch_bytes_max", "Maximum size of one transaction, and so of one log entry.", SIZE),
    _limit("batch_commands_max", "Maximum number of writes in one transaction."),
    _limit(
        "command_bytes_max",
        "Maximum bytes that a single write may change, index entries included. More is refused as too large. It must "
        "fit into one entry of the log (raft.entry-bytes-max). The leader's own work takes the least of it.",
        SIZE,
        low=COMMAND_BYTES_MIN,
    ),
    _limit("entries_in_flight_max", "Log entries in flight to a majority. Beyond it writes wait."),
    _limit(
        "entries_in_flight_bytes_max",
        "Bytes that the log entries in flight may write. At least the maximum of one entry.",
        SIZE,
    ),
    _limit(
        "held_bytes_max",
        "Maximum size of the log, in memory and on disk, that is kept for a member while it fetches a snapshot and "
        "catches up. The leader slows writers down before this is reached; beyond it the member needs another "
        "snapshot.",
        SIZE,
    ),
    _limit("evaluate_slice_ms", "How long writes are evaluated before other calls are served.", unit="ms", high=1_000),
    _limit(
        "remember_ms",
        "How long results of writes are remembered, so that a retry has no second effect.",
        unit="ms",
        high=604_800_000,
    ),
    _limit("remember_requests_max", "Maximum number of remembered results."),
    _limit("remember_bytes_max", "Maximum bytes of the remembered results.", SIZE),
    _limit(
        "ceiling_ahead_ms",
        "How far above its own timestamp a read ahead of the log raises the replicated ceiling.",
        unit="ms",
        high=60_000,
    ),
    _limit(
        "walk_ms",
        "How long a start verifies checksums of the stored data before the node serves; the rest follows while it "
        "serves.",
        unit="ms",
        high=86_400_000,
    ),
    _limit(
        "examined_percent",
        "Percentage of the entries for which a follower compares what the leader read with its own data, before it "
        "acknowledges the entry. One entry in 50 ms is compared besides. 0 switches both off. All nodes should have "
        "the same.",
        low=0,
        high=100,
    ),
    _limit(
        "patrol_ms",
        "Duration of one background pass that verifies the checksums of all stored data; passes repeat. A pass takes "
        "longer if it would need more than a fifth of a thread.",
        unit="ms",
        high=2_592_000_000,
    ),
    _limit(
        "transaction_operations_max",
        "Operations of one commit, batches too. More is refused as too large.",
        high=NodeLimits().transaction_operations_max,
    ),
    _limit(
        "transaction_bytes_max",
        "Bytes of documents, keys and values that one commit may write. More is refused as too large.",
        SIZE,
        low=2 << 20,
        high=NodeLimits().transaction_bytes_max,
    ),
    _limit(
        "footprint_keys_max",
        "Keys that a transaction may have read and validates at its commit. More is refused as too large.",
        high=NodeLimits().footprint_keys_max,
    ),
    _limit(
        "footprint_ranges_max",
        "Ranges that a transaction may have read and validates at its commit. More is refused as too large.",
        high=NodeLimits().footprint_ranges_max,
    ),
    _limit("watches_max", "Open watches. One caller may hold as many as it leaves free. More are refused."),
    _limit("watch_queue_events_max", "Changes queued for one watch. Beyond it the watch reads them from disk later."),
    _limit("watch_queue_bytes_max", "Bytes of changes queued for one watch.", SIZE),
    _limit("watch_bytes_max", "Bytes of changes queued for all watches.", SIZE),
    _limit("watch_recent_entries_max", "Log entries whose changes are kept in memory, for watches that resume."),
    _limit("watch_recent_bytes_max", "Bytes of the changes kept in memory.", SIZE),
    _limit("watch_passes_max", "Watches that read history from disk at the same time. More wait."),
    _limit(
        "watch_pass_events_max",
        "Changes that one pass over the history keeps in memory. More changes take several passes.",
    ),
    _limit(
        "watch_close_ms",
        "Time without writes after which a leader with watches appends an entry that resolves that time.",
        unit="ms",
        high=3_600_000,
    ),
    _limit(
        "watch_leaderless_ms",
        "Time without a known leader after which a node ends its watches, so that they continue at another node.",
        unit="ms",
        high=3_600_000,
    ),
    _raft(
        "max_drift_ppm",
        "Maximum difference in speed between the clocks of two hosts. Shortens the lease.",
        unit="millionths",
        high=499_999,
    ),
    _raft(
        "notice_ms",
        "How long a leader waits for the next entry before it sends its commit index alone. Followers apply entries up "
        "to it.",
        unit="ms",
        high=60_000,
    ),
    _raft("window_bytes_max", "Bytes of entries in flight to one member.", SIZE, low=1),
    _raft("window_messages_max", "Messages in flight to one member.", low=1),
    _raft("message_bytes_max", "Maximum size up to which entries are put into one message.", SIZE, low=1),
    _raft(
        "entry_bytes_max",
        "Maximum size of one log entry. Larger ones are refused.",
        SIZE,
        low=1,
        high=ENTRY_BYTES_LIMIT,
    ),
    _raft(
        "retain_entries",
        "Log entries kept for members that are a little behind. A member that lacks more gets a snapshot.",
    ),
    _raft("retain_bytes", "Bytes of the log entries kept for members that are behind, in memory and on disk.", SIZE),
    _raft("caught_up_entries", "A learner may become a voter if it lacks at most this many entries."),
    Setting(
        "metrics-listen",
        ADDRESS,
        "",
        "Serve /metrics, /healthz and /readyz at this address, over HTTP. A port alone means 127.0.0.1; port 0 takes a "
        "free port, which the log names.",
        OBSERVING,
        bound="not the address of listen; no encryption and no authentication there",
        default_text="nowhere",
    ),
    _number(
        "ready-lag-ms",
        10_000,
        "A follower that may lack entries committed longer ago than this is not ready.",
        OBSERVING,
        1,
        3_600_000,
        bound="at least four times heartbeat-ms",
    ),
    *log_settings(OBSERVING),
    _number(
        "slow-request-ms",
        1_000,
        "A call that takes longer is logged with a breakdown of its time; 0 logs none.",
        OBSERVING,
        0,
        3_600_000,
    ),
    Setting(
        "trace-endpoint",
        TEXT,
        "",
        "Send traces of calls to this OpenTelemetry collector, by OTLP over gRPC: http://HOST:PORT, or https://. "
        "Needs the extra [tracing].",
        OBSERVING,
        metavar="URL",
        default_text="no traces",
    ),
    Setting(
        "trace-percent",
        WHOLE,
        1,
        "Percentage of calls to trace if the caller sends no trace context; otherwise the caller's choice counts.",
        OBSERVING,
        low=0,
        high=100,
    ),
    _number(
        "clock-offset-ms",
        0,
        "Added to the physical clock, to simulate a wrong one.",
        TESTS,
        -CLOCK_OFFSET_MS_MAX,
        CLOCK_OFFSET_MS_MAX,
        is_for_tests=True,
    ),
    Setting(
        "faults-file",
        PATH,
        None,
        "A file with the names of nodes to cut off: no messages to them or from them.",
        TESTS,
        bound="only on a loopback address",
        is_for_tests=True,
    ),
    Setting(
        "parent-fd",
        WHOLE,
        None,
        "Read end of a pipe; when the parent process closes the other end, this process ends at once.",
        TESTS,
        low=0,
        high=1 << 20,
        is_for_tests=True,
    ),
)

BY_NAME: Final = {each.name: each for each in SETTINGS}
