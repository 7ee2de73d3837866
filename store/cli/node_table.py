"""The table of ``cortado top``: as many columns as fit, the most important first; nothing in it wraps."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Final, NamedTuple

from rich import box
from rich.table import Table
from rich.text import Text

from cortado.store.cli.samples import NodeSample
from cortado.store.cli.terminal import one_line
from cortado.store.settings.sizes import size_text

_GAP: Final = 2
_BAD: Final = "bold red"
_ODD: Final = "yellow"

# From this value on a number is worth looking at.
_QUEUE_ODD: Final = 0.5
_LAG_ODD_S: Final = 1.0
_LOOP_ODD_S: Final = 0.25
# A clock that is off by one of these or more is told in it, so that all of the number fits.
_CLOCK_UNITS: Final = (("y", 365.25 * 86_400), ("d", 86_400.0), ("h", 3_600.0), ("s", 1.0))


class _Column(NamedTuple):
    """``rank``: the lower, the narrower a terminal may be for it to be shown."""

    title: str
    width: int
    rank: int
    cell: Callable[[NodeSample], Text]


def node_table(nodes: Sequence[NodeSample], leader: str, width: int) -> Table:
    """Return the nodes in ``width`` columns."""
    name_width = min(max([4, *(len(one_line(each.node_id)) for each in nodes)]), width // 3)
    columns = _fitting(width - name_width)
    # One of the gap's columns is the box's own.
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, _GAP - 1, 0, 0))
    table.add_column(Text("node"), no_wrap=True, width=name_width, header_style="bold")
    for column in columns:
        justify = "left" if column.title in ("role", "state") else "right"
        table.add_column(
            Text(column.title),
            justify=justify,  # type: ignore[arg-type]
            no_wrap=True,
            width=column.width,
            header_style="bold",
        )
    for node in nodes:
        style = "bold" if node.node_id == leader else ""
        table.add_row(Text(one_line(node.node_id), style=style), *(each.cell(node) for each in columns))
    return table


def problem_lines(nodes: Sequence[NodeSample]) -> Iterator[Text]:
    """Yield the problems, a line for each node."""
    for node in nodes:
        if not node.reached:
            # gRPC wraps the cause in several sentences.
            problem = one_line(node.problem or "").rpartition("last error: ")[2].removeprefix("UNKNOWN: ")
            yield Text(f"{one_line(node.node_id)} at {one_line(node.address)} does not answer: {problem}", _BAD)
        elif node.reasons:
            reasons = ", ".join(node.reasons).replace("_", " ")
            yield Text(f"{one_line(node.node_id)} is not ready: {one_line(reasons)}", _ODD)


def _fitting(width: int) -> list[_Column]:
    chosen = []
    for column in sorted(_COLUMNS, key=lambda each: each.rank):
        width -= column.width + _GAP
        if width < 0:
            break
        chosen.append(column)
    return [column for column in _COLUMNS if column in chosen]


# --- cells -----------------------------------------------------------------------------------------------------


def _text(value: str | None, style: str = "") -> Text:
    return Text("-", "dim") if value is None else Text(one_line(value), style)


def _state(node: NodeSample) -> Text:
    if not node.reached:
        return Text("no answer", _BAD)
    return Text("ready", "green") if node.ready else Text("not ready", _BAD)


def _role(node: NodeSample) -> Text:
    return _text(node.role, "bold" if node.role == "leader" else "")


def _number(value: float | None) -> Text:
    """Three figures, and thousands as k."""
    if value is None:
        return _text(None)
    if value >= 9_999.5:
        return Text(f"{value / 1000:.0f}k" if value >= 99_950 else f"{value / 1000:.1f}k")
    return Text(f"{value:.0f}" if value >= 9.95 or value == 0 else f"{value:.1f}")


def _alarming(value: float | None) -> Text:
    text = _number(value)
    if value:
        text.stylize(_ODD)
    return text


def _latency(value_s: float | None) -> Text:
    if value_s is None:
        return _text(None)
    ms = value_s * 1000
    if ms < 9.95:
        return Text(f"{ms:.1f}ms")
    return Text(f"{ms:.0f}ms" if ms < 999.5 else f"{value_s:.1f}s")


def _lag(node: NodeSample) -> Text:
    if node.lag_entries is None:
        return _text(None)
    lag_s = node.lag_s or 0.0
    entries = str(node.lag_entries) if node.lag_entries < 1_000 else f"{node.lag_entries / 1000:.0f}k"
    if not lag_s:
        return Text(entries)
    time = f"{lag_s / 60:.0f}m" if lag_s >= 99.5 else f"{lag_s:.0f}s" if lag_s >= 0.95 else f"{lag_s:.1f}s"
    return Text(f"{entries} {time}", _ODD if lag_s >= _LAG_ODD_S else "")


def _queue(node: NodeSample) -> Text:
    if node.queue_use is None:
        return _text(None)
    return Text(f"{100 * node.queue_use:.0f}%", _ODD if node.queue_use >= _QUEUE_ODD else "")


def _bytes(value: int | None) -> Text:
    """Return a size as everywhere, without the blank: so more columns fit into this table."""
    return _text(None if value is None else size_text(value).replace(" ", ""))


def _loop(node: NodeSample) -> Text:
    text = _latency(node.loop_lag_max_s)
    if (node.loop_lag_max_s or 0.0) >= _LOOP_ODD_S:
        text.stylize(_ODD)
    return text


def _clock(node: NodeSample) -> Text:
    if node.clock_offset_s is None:
        return _text(None)
    for unit, unit_s in _CLOCK_UNITS:
        if abs(node.clock_offset_s) >= unit_s:
            return Text(f"{node.clock_offset_s / unit_s:+.0f}{unit}", style=_BAD)
    return _text(f"{node.clock_offset_s * 1000:+.0f}ms")


def _uptime(node: NodeSample) -> Text:
    return _text(None if node.uptime_s is None else str(timedelta(seconds=int(node.uptime_s))).replace(" days, ", "d "))


def _cpu(node: NodeSample) -> Text:
    return _text(None if node.cpu_percent is None else f"{node.cpu_percent:.0f}%")


_COLUMNS: Final = (
    _Column("role", 9, 0, _role),
    _Column("state", 9, 1, _state),
    _Column("reads/s", 7, 2, lambda node: _number(node.reads_per_s)),
    _Column("rd p50", 6, 12, lambda node: _latency(node.read_p50_s)),
    _Column("rd p99", 6, 5, lambda node: _latency(node.read_p99_s)),
    _Column("writes/s", 8, 3, lambda node: _number(node.writes_per_s)),
    _Column("wr p50", 6, 13, lambda node: _latency(node.write_p50_s)),
    _Column("wr p99", 6, 4, lambda node: _latency(node.write_p99_s)),
    _Column("lag", 8, 6, _lag),
    _Column("sync p99", 8, 14, lambda node: _latency(node.sync_p99_s)),
    _Column("queues", 6, 9, _queue),
    _Column("refused/s", 9, 15, lambda node: _alarming(node.refused_per_s)),
    _Column("disk", 7, 7, lambda node: _bytes(node.disk_free_bytes)),
    _Column("memory", 7, 8, lambda node: _bytes(node.memory_bytes)),
    _Column("cpu", 4, 10, _cpu),
    _Column("loop", 6, 16, _loop),
    _Column("clock", 6, 11, _clock),
    _Column("term", 4, 17, lambda node: _text(None if node.term is None else str(node.term))),
    _Column("watches", 7, 18, lambda node: _text(None if node.watches is None else str(node.watches))),
    _Column("uptime", 10, 19, _uptime),
)
