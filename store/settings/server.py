"""The settings of a server: the one table of them.

Flags, variables, files, refusals, ``config show`` and docs/configuration.md all come from it. What must hold between
two settings is in :meth:`cortado.store.server.config.ServerConfig.check`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from cortado.raft.settings import ENTRY_BYTES_LIMIT, RaftSettings
from cortado.store.node.limits import NodeLimits
from cortado.store.settings.kinds import ADDRESS, ADDRESSES, FLAG, PATH, SIZE, TEXT, WHOLE, Kind, choice
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
        "Where everything durable lies; made at the first start. One process at a time may use it.",
        NODE,
    ),
    Setting(
        "listen",
        ADDRESS,
        "127.0.0.1:7621",
        "Address to serve on. Port 0 takes a free one.",
        NODE,
        bound="a loopback address, unless there are certificates or insecure is true",
    ),
    Setting(
        "port-file",
        PATH,
        None,
        "Write the address there once it is served, for scripts.",
        NODE,
        bound="in a directory that exists",
        default_text="nowhere",
    ),
    Setting(
        "verify",
        FLAG,
        False,
        "Look at every page of the data file before serving, however large it is. Otherwise, of a file of more than "
        "2 GiB, at the pages that lead to others and at about 2 GiB of the rest.",
        NODE,
    ),
    Setting(
        "map-size",
        SIZE,
        None,
        "Bound on the data. It is address space rather than disk: the file grows as it is used.",
        NODE,
        low=1 << 20,
        high=1 << 46,
        default_text="256GiB, or what the process may map",
    ),
    Setting(
        "advertise",
        ADDRESS,
        "",
        "Address under which the other nodes and the clients reach this node.",
        CLUSTER,
        bound="needed where listen is the address for all of a host's",
        default_text="what it listens on",
    ),
    Setting(
        "node-id",
        TEXT,
        "",
        "This node's name in the cluster, for ever.",
        CLUSTER,
        bound="at most 64 letters, digits, '_', '.' and '-'",
        metavar="ID",
        default_text="what the data directory says, or at the first start a drawn one",
    ),
    Setting(
        "join",
        ADDRESSES,
        (),
        "Join the cluster of these servers, which was told of this node by cortado member add. Ignored once joined.",
        CLUSTER,
        default_text="begin a cluster of one",
    ),
    _number("join-timeout-ms", 60_000, "How long to look for that cluster's leader.", CLUSTER, 1, 3_600_000),
    Setting(
        "cluster-id",
        TEXT,
        "",
        "Name of the cluster, at the first start.",
        CLUSTER,
        bound="at most 100 ASCII characters that print",
        metavar="NAME",
        default_text="what the data directory says, or at the first start a new one",
    ),
    Setting(
        "tls-cert",
        PATH,
        None,
        "This node's certificate. Both sides of every connection then show one. Read again when the file changes.",
        SECURITY,
        bound="tls-cert, tls-key and tls-ca: all three, or none",
        metavar="PEM",
    ),
    Setting("tls-key", PATH, None, "The certificate's private key.", SECURITY, bound="as tls-cert", metavar="PEM"),
    Setting(
        "tls-ca",
        PATH,
        None,
        "The authority that everybody's certificate is of.",
        SECURITY,
        bound="as tls-cert",
        metavar="PEM",
    ),
    Setting(
        "insecure",
        FLAG,
        False,
        "Allow an address that is not loopback although nothing is encrypted, and nobody is asked who they are.",
        SECURITY,
        bound="not together with tls-cert",
    ),
    _number(
        "max-clock-offset-ms",
        250,
        "How far ahead of this clock a timestamp from outside may be, and how far from most nodes' clocks a node's may "
        "be before it gives leadership up.",
        TIMERS,
        1,
        60_000,
    ),
    _number("stop-grace-ms", 5_000, "How long calls may go on once the server was told to stop.", TIMERS, 0, 600_000),
    _number("heartbeat-ms", 100, "How often a leader is heard. All nodes should have the same.", TIMERS, 10, 10_000),
    _number(
        "election-ms",
        700,
        "After how long without a leader the others begin to look for a new one, at the earliest; at the latest after "
        "13/7 of it. All nodes should have the same.",
        TIMERS,
        40,
        60_000,
        bound="at least four times heartbeat-ms",
    ),
    Setting(
        "lease",
        FLAG,
        False,
        "A leader answers reads without asking the others, for a little less than election-ms after they last "
        "answered. Only where no host's clock runs faster than another's by more than raft.max-drift-ppm: a host that "
        "breaks that can answer with what is old.",
        TIMERS,
    ),
    _limit(
        "in_flight_bytes_max",
        "About what all that is in flight may hold in memory: requests until they are answered, chunks of bulk "
        "streams, entries until they are applied. Calls past it are refused, chunks wait.",
        SIZE,
    ),
    _limit("writes_max", "Writes in flight. More are refused, with a delay after which to try again."),
    _limit("write_bytes_max", "Bytes of the requests of writes in flight. More are refused.", SIZE),
    _limit("reads_max", "Single reads in flight. More are refused."),
    _limit("scans_max", "Streamed scans and table checks in flight. More are refused."),
    _limit("bulk_streams_max", "Bulk streams in flight. More are refused."),
    _limit("bulk_chunks_max", "Chunks in flight on each bulk stream. More wait."),
    _limit("turn_bytes_max", "What one transaction, so one log entry, may hold.", SIZE),
    _limit("turn_commands_max", "How many writes may share one transaction."),
    _limit(
        "command_bytes_max",
        "What a single write may change, index entries included. More is refused as too large. One entry of the log "
        "(raft.entry-bytes-max) must be able to hold it.",
        SIZE,
    ),
    _limit("turns_in_flight_max", "Log entries that may be on their way to a majority. Writes wait behind them."),
    _limit(
        "turns_in_flight_bytes_max",
        "Bytes that those entries may write, whatever the requests were that caused them. At least what one may hold.",
        SIZE,
    ),
    _limit(
        "held_bytes_max",
        "How long the log may become for a member that is brought a snapshot and what follows it, in memory and on the "
        "disk. The leader slows writers down before; past it the member needs another snapshot.",
        SIZE,
    ),
    _limit(
        "evaluate_slice_ms", "How long writes are evaluated before other calls get their turn.", unit="ms", high=1_000
    ),
    _limit(
        "remember_ms",
        "How long the results of writes are remembered, so that a retry has one effect.",
        unit="ms",
        high=604_800_000,
    ),
    _limit("remember_requests_max", "How many results are remembered at most."),
    _limit("remember_bytes_max", "How many bytes of results are remembered at most.", SIZE),
    _limit(
        "ceiling_ahead_ms",
        "How far above itself a read ahead of the log raises the replicated ceiling.",
        unit="ms",
        high=60_000,
    ),
    _limit(
        "walk_ms",
        "How long checksums of what is stored are verified at a start, before anything is served; the rest follows "
        "while it serves.",
        unit="ms",
        high=86_400_000,
    ),
    _limit(
        "examined_percent",
        "For how many of a hundred entries followers compare what the leader worked them out from with what they hold, "
        "before they acknowledge them. All nodes should have the same.",
        low=0,
        high=100,
    ),
    _limit(
        "patrol_ms",
        "Within which time checksums of all that is stored are verified while the node serves, again and again. Where "
        "that would take more than a fifth of a thread, it takes longer.",
        unit="ms",
        high=2_592_000_000,
    ),
    _limit("watches_max", "Watches open at once. More are refused."),
    _limit("watch_queue_events_max", "Changes that wait to be sent to one watch. Past it, it reads from disk later."),
    _limit("watch_queue_bytes_max", "Bytes of changes that wait to be sent to one watch.", SIZE),
    _limit("watch_bytes_max", "Bytes of changes that wait to be sent to all watches.", SIZE),
    _limit("watch_recent_entries_max", "Log entries whose changes are kept in memory, for watchers that come back."),
    _limit("watch_recent_bytes_max", "Bytes of changes that are kept in memory.", SIZE),
    _limit("watch_passes_max", "Watches that search the versions of their range at once. More wait."),
    _limit("watch_pass_events_max", "Changes that such a search keeps in mind. More take several searches."),
    _limit(
        "watch_close_ms",
        "So long after the last write a leader with watches writes an entry that resolves the time since then.",
        unit="ms",
        high=3_600_000,
    ),
    _limit(
        "watch_leaderless_ms",
        "So long after the last leader was known, watches are ended, to go on at another node.",
        unit="ms",
        high=3_600_000,
    ),
    _raft(
        "max_drift_ppm",
        "How far apart the speeds of two hosts' clocks may be. Shortens the lease.",
        unit="millionths",
        high=499_999,
    ),
    _raft(
        "notice_ms",
        "How long a leader waits for a next entry before it sends alone the news of what is decided, which lets "
        "followers apply it.",
        unit="ms",
        high=60_000,
    ),
    _raft("window_bytes_max", "Bytes of entries that may be on their way to one member.", SIZE, low=1),
    _raft("window_messages_max", "Messages that may be on their way to one member.", low=1),
    _raft("message_bytes_max", "Entries are gathered into one message up to this size.", SIZE, low=1),
    _raft(
        "entry_bytes_max",
        "The largest entry of the log. What is larger is refused.",
        SIZE,
        low=1,
        high=ENTRY_BYTES_LIMIT,
    ),
    _raft(
        "retain_entries",
        "Entries that are kept for members that are a little behind. One that lacks more is sent a snapshot.",
    ),
    _raft("retain_bytes", "Bytes of those entries, in memory and on the disk.", SIZE),
    _raft("caught_up_entries", "A learner that lacks no more entries than this may become a voter."),
    Setting(
        "metrics-listen",
        ADDRESS,
        "",
        "Serve /metrics, /healthz and /readyz there, over HTTP. A port alone is one of 127.0.0.1; port 0 takes a free "
        "one, which the log names.",
        OBSERVING,
        bound="not the address of listen; nothing is encrypted there, and nobody is asked who they are",
        default_text="nowhere",
    ),
    _number(
        "ready-lag-ms",
        10_000,
        "A follower that may lack what was decided so long ago is not ready.",
        OBSERVING,
        1,
        3_600_000,
        bound="at least four times heartbeat-ms",
    ),
    Setting(
        "log-format",
        choice("text", "json"),
        "text",
        "How the log is written, to standard error: lines for people, or JSON, one object a line.",
        OBSERVING,
    ),
    Setting(
        "log-level",
        choice("debug", "info", "warning", "error"),
        "info",
        "What is less important than this is not logged.",
        OBSERVING,
    ),
    _number(
        "slow-request-ms",
        1_000,
        "A call that takes longer is logged, with where the time went; 0 for none.",
        OBSERVING,
        0,
        3_600_000,
    ),
    Setting(
        "trace-endpoint",
        TEXT,
        "",
        "Send traces of calls to the OpenTelemetry collector there, by OTLP over gRPC: http://HOST:PORT, or https://. "
        "Needs the extra [tracing].",
        OBSERVING,
        metavar="URL",
        default_text="no traces",
    ),
    Setting(
        "trace-percent",
        WHOLE,
        1,
        "How many of a hundred calls are traced whose callers say nothing of a trace; the others follow their callers.",
        OBSERVING,
        low=0,
        high=100,
    ),
    _number(
        "clock-offset-ms",
        0,
        "Added to the physical clock, to see what a wrong one does.",
        TESTS,
        -CLOCK_OFFSET_MS_MAX,
        CLOCK_OFFSET_MS_MAX,
        is_for_tests=True,
    ),
    Setting(
        "faults-file",
        PATH,
        None,
        "A file that names the nodes that nothing is sent to or taken from.",
        TESTS,
        bound="only on a loopback address",
        is_for_tests=True,
    ),
    Setting(
        "parent-fd",
        WHOLE,
        None,
        "For who starts this process: a pipe's end; when the other one closes, the process ends at once.",
        TESTS,
        low=0,
        high=1 << 20,
        is_for_tests=True,
    ),
)

BY_NAME: Final = {each.name: each for each in SETTINGS}
