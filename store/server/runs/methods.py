"""The methods with runs. A method joins by a class of its own, in this list."""

from __future__ import annotations

from typing import Final

from cortado.store.host.host import Host
from cortado.store.observe.requests import Requests
from cortado.store.server.authority import Authority
from cortado.store.server.runs.answering import RunMethod
from cortado.store.server.runs.commits import PlainCommits
from cortado.store.server.runs.documents import PlainDocumentGets, PlainDocumentPuts
from cortado.store.server.runs.kv import PlainDeletes, PlainGets, PlainMultiGets, PlainPuts

KINDS: Final[tuple[type[RunMethod], ...]] = (
    *(PlainPuts, PlainDeletes, PlainGets, PlainMultiGets),
    *(PlainDocumentPuts, PlainDocumentGets),
    PlainCommits,
)


def run_methods(host: Host, requests: Requests, authority: Authority | None = None) -> dict[str, RunMethod]:
    """Return them for one node, by their names."""
    return {kind.name: kind(host, requests, authority) for kind in KINDS}
