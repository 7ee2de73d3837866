"""``cortado doctor``: what is wrong, and what a report about it needs."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Annotated, Any, Final

from cortado.errors import CortadoError
from cortado.store.cli.commands.cluster_options import DIRECTORY
from cortado.store.cli.failures import DAMAGE, CheckFailed
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client.endpoints import Tls
from cortado.store.doctor.bundle import write_bundle
from cortado.store.doctor.checks import Verdict, as_record, checks
from cortado.store.doctor.collect import Collected, Sources, cluster_endpoints, collect
from cortado.store.local_cluster.files import ClusterFiles
from cortado.store.settings.client import ENDPOINTS

_LINES: Final = 200
_PROBE_S: Final = 3.0


@command(
    "doctor",
    strict=False,
    examples="""
        cortado doctor
        cortado doctor --endpoint 127.0.0.1:7621 --data-dir /var/lib/cortado
        cortado doctor --config /etc/cortado.toml --log /var/log/cortado.log --bundle doctor.tar.gz
        cortado doctor --cluster cortado-cluster -o json
    """,
)
def doctor(
    session: Session,
    config: Annotated[
        Path | None,
        Option(help="A server's file of settings on this host.", metavar="PATH"),
    ] = None,
    data_dir: Annotated[
        list[Path] | None,
        Option(help="A node's data directory on this host; may be repeated.", metavar="PATH"),
    ] = None,
    log: Annotated[list[Path] | None, Option(help="A log to look into; may be repeated.", metavar="FILE")] = None,
    lines: Annotated[int, Option(help="How many lines of each log.", parser=whole("--lines"), metavar="N")] = _LINES,
    cluster: Annotated[
        Path | None,
        Option(
            help="The directory of a cluster on this machine.",
            metavar="PATH",
            show_default=f"{DIRECTORY}, where it is there and no endpoint is given",
        ),
    ] = None,
    bundle: Annotated[
        Path | None,
        Option(help="Write an archive with all of it, to send along with a report.", metavar="FILE.tar.gz"),
    ] = None,
) -> None:
    """Look at the nodes, this host, a data directory, certificates and logs, and say what is wrong.

    Nothing is changed, and the server may run meanwhile. Keys, values, documents, and what is in key files are
    left out. Exit code 8 where a check failed.
    """
    files = _local_cluster(session, cluster)
    sources = _sources(session, files, config, tuple(data_dir or ()), tuple(log or ()), lines)
    collected = collect(sources)
    found = checks(collected.facts)
    report = {"checks": [as_record(each) for each in found], "facts": collected.facts}
    if bundle is not None:
        write_bundle(bundle, report, collected.texts, int(time.time()))
    if session.as_json:
        session.show.json(report)
    else:
        _show(session, report, collected, bundle)
    if any(each.verdict is Verdict.FAIL for each in found):
        raise CheckFailed(DAMAGE)


def _local_cluster(session: Session, given: Path | None) -> ClusterFiles | None:
    """The one that is named; else the one that is here, where nothing else is named."""
    if given is not None:
        files = ClusterFiles(given)
        files.read_plan()
        return files
    files = ClusterFiles(DIRECTORY)
    is_default = all(each.origin == "default" for each in session.found if each.setting is ENDPOINTS)
    return files if files.exists and is_default and session.problem is None else None


def _sources(
    session: Session,
    files: ClusterFiles | None,
    config: Path | None,
    data_dirs: tuple[Path, ...],
    logs: tuple[Path, ...],
    lines: int,
) -> Sources:
    endpoints, tls = tuple(session.endpoint.split(",")), session.tls
    if files is not None:
        try:
            endpoints, of_cluster = cluster_endpoints(files)
        except CortadoError:
            of_cluster = None

        def tls() -> Tls | None:
            return of_cluster

    return Sources(
        client=session.found if session.problem is None else session.problem,
        endpoints=endpoints,
        tls=tls,
        environment=os.environ,
        config=config,
        data_dirs=data_dirs,
        logs=logs,
        lines=lines,
        cluster=files,
        timeout_s=min(session.timeout_s, _PROBE_S),
    )


def _line(check: dict[str, str]) -> str:
    advice = f" ─ {check['advice']}" if check["advice"] else ""
    return f"{check['name']}: {check['found']}{advice}"


def _show(session: Session, report: dict[str, Any], collected: Collected, bundle: Path | None) -> None:
    host = collected.facts["host"]
    if "cortado" in host:
        session.show.line(f"cortado {host['cortado']}, Python {host['python']}, {host['kernel']}, {host['os']}")
        session.show.line("")
    records = report["checks"]
    session.show.record([(each["verdict"], _line(each)) for each in records])
    failed = sum(each["verdict"] == Verdict.FAIL for each in records)
    warned = sum(each["verdict"] == Verdict.WARN for each in records)
    well = len(records) - failed - warned
    session.show.line("")
    session.show.line(f"{count(failed, 'failure')}, {count(warned, 'warning')}, {well} well")
    if bundle is not None:
        session.show.note(f"wrote {bundle}")
