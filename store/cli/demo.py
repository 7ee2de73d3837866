"""The last part of ``cortado dev up --demo``: the tables as they are filled, and commands to try on them."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from cortado.store.cli.common_options import CLUSTER_DIRECTORY
from cortado.store.cli.progress import showing_progress
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.local_cluster.demo import fill
from cortado.store.local_cluster.files import ClusterFiles, Plan
from cortado.store.local_cluster.prepare import client_tls, connect

_TIMEOUT_S: Final = 60.0
_COMMANDS: Final = (
    "cortado get nyc.airlines UA",
    "cortado scan nyc.flights N14228 --index by_tailnum --columns time_hour,origin,dest --limit 5",
    "cortado scan nyc.flights --filter \"dest = 'HNL' and arr_delay > 60\" --count",
    'cortado scan nyc.flights --aggregate "count(*) as n, avg(arr_delay) as late" --group-by carrier',
    "before=$(cortado now)",
    "cortado update nyc.airlines UA --set 'name=\"United\"'",
    'cortado get nyc.airlines UA --at "$before"',
)


def fill_and_tell(session: Session, directory: Path) -> None:
    """Fill the cluster of this directory, and write commands to try. Raises CortadoError."""
    files = ClusterFiles(directory)
    plan = files.read_plan()
    try:
        with connect(files, plan, timeout_s=_TIMEOUT_S) as client, showing_progress(quiet=False) as report:
            for table, rows in fill(client, report):
                sys.stdout.write(f"{table.full_name}: {count(rows, 'row')}\n")
                sys.stdout.flush()
    except KeyboardInterrupt:
        stop = f"cortado dev down{_place(files)}"
        session.show.note(f"the cluster runs on: the same command goes on with the load, {stop} stops it")
        raise
    sys.stdout.writelines(f"{line}\n" for line in _advice(files, plan))


def _place(files: ClusterFiles) -> str:
    return "" if files.directory == CLUSTER_DIRECTORY else f" --dir {shlex.quote(str(files.directory))}"


def _advice(files: ClusterFiles, plan: Plan) -> Iterator[str]:
    place = _place(files)
    yield "\nTry it:"
    yield f"  export CORTADO_ENDPOINTS={plan.endpoints}"
    tls = client_tls(files, plan)
    if tls is not None:
        paths = {"CA": tls.ca, "CERT": tls.cert, "KEY": tls.key}
        yield f"  export {' '.join(f'CORTADO_TLS_{name}={shlex.quote(str(path))}' for name, path in paths.items())}"
    yield from (f"  {line}" for line in _COMMANDS)
    yield "The console is at http://127.0.0.1:7629/ui while this runs, which needs the extra [gateway]:"
    yield "  cortado gateway"
    if len(plan.members) > 1:
        yield "Kill a node, and read again:"
        yield f"  cortado dev kill {plan.members[0].node_id}{place}"
    yield "Stop the cluster:"
    yield f"  cortado dev down{place}"
