"""``cortado status``: what a node says of itself."""

from __future__ import annotations

import dataclasses
from datetime import timedelta

import typer

from cortado.store.cli.render import size
from cortado.store.cli.session import Session, command
from cortado.store.client import Status


def add_to(app: typer.Typer) -> None:
    @command(
        app,
        "status",
        examples="""
            cortado status
            cortado status -e 127.0.0.1:7621 -o json
        """,
    )
    def status(session: Session) -> None:
        """Show a server's state, its disk, its clock and what is in flight."""
        with session.client() as client:
            found = client.status()
        if session.as_json:
            session.show.json({**dataclasses.asdict(found), "ts": str(found.ts)})
            return
        session.show.record(_pairs(found))
        session.show.table(
            ("queue", "in flight", "limit", "bytes", "bytes limit"),
            [
                (q.name, q.count, q.count_max, size(q.bytes), size(q.bytes_max) if q.bytes_max else "-")
                for q in found.queues
            ],
        )


def _pairs(found: Status) -> list[tuple[str, object]]:
    use = 100 * found.map_used_bytes / found.map_limit_bytes if found.map_limit_bytes else 0.0
    return [
        ("state", found.state),
        ("version", found.version),
        ("cluster", found.cluster_id),
        ("node", found.node_id),
        ("leader", found.leader),
        ("term", found.term),
        ("applied index", found.applied_index),
        ("timestamp", f"{found.ts} ({found.ts.as_datetime():%Y-%m-%d %H:%M:%S}Z)"),
        ("uptime", timedelta(seconds=found.uptime_ms // 1000)),
        ("data directory", found.data_dir),
        ("map", f"{size(found.map_used_bytes)} of {size(found.map_limit_bytes)} ({use:.2f}%)"),
        ("disk free", size(found.disk_free_bytes)),
        ("loop lag, last minute", f"{found.loop_lag_ms_max} ms"),
    ]
