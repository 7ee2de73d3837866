"""``cortado namespace``: the namespaces of pairs, listed, dropped and brought back."""

from __future__ import annotations

from typing import Annotated, Any

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.asking import UNCHANGED, DryRunOption, YesOption, confirm
from cortado.store.cli.common_options import AtOption, NamespaceArgument, NumberOption, as_of
from cortado.store.cli.options import Option
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command


@command(
    "namespace list",
    examples="""
        cortado namespace list
        cortado namespace list -o json
        cortado namespace list --dropped
    """,
)
def list_(
    session: Session,
    dropped: Annotated[bool, Option("--dropped", help="List drops whose data is not cleared yet, instead.")] = False,
    at: AtOption = None,
) -> Answer:
    """List the namespaces that have pairs."""
    from cortado.store.cli.drops import dropped_rows

    with session.client() as client:
        if dropped:
            if at is not None:
                raise InvalidArgument("--at", "must not be given together with --dropped")
            return dropped_rows([each for each in client.dropped() if each.kind == "namespace"])
        names = as_of(client, at).namespaces()
    return Rows(("namespace",), [(name,) for name in names], [{"namespace": name} for name in names])


@command(
    "namespace drop",
    examples="""
        cortado namespace drop sessions_copy --dry-run
        cortado namespace drop sessions_copy --yes
    """,
)
def drop(
    session: Session, namespace: NamespaceArgument, dry_run: DryRunOption = False, yes: YesOption = False
) -> Answer:
    """Drop all pairs of a namespace at once, however many they are.

    They can be undropped until the grace is over, which is as long as the cluster keeps old versions. Reads at an
    earlier time find them until then.
    """
    from cortado.store.cli.drops import record_json

    with session.client() as client:
        if dry_run:
            return _dry_drop(namespace, is_empty=not any(client.kv(namespace).scan(limit=1, keys_only=True)))
        confirm(f"Drop all pairs of namespace {namespace}?", yes=yes)
        record = client.drop_namespace(namespace)
    return Said(f"dropped namespace {namespace}: number {record.number}", record_json(record))


def _dry_drop(namespace: str, *, is_empty: bool) -> Answer:
    if is_empty:
        raise NotFound("namespace", namespace)
    would: dict[str, Any] = {"namespace": namespace}
    return Said(f"would drop all pairs of namespace {namespace}", would, note=UNCHANGED)


@command(
    "namespace undrop",
    examples="""
        cortado namespace undrop sessions_copy
    """,
)
def undrop(session: Session, namespace: NamespaceArgument, number: NumberOption = None) -> Answer:
    """Bring back the pairs of a dropped namespace, with their history.

    Refused if pairs were written to it since.
    """
    with session.client() as client:
        client.undrop_namespace(namespace, number=number)
    return Said(f"undropped namespace {namespace}", {"namespace": namespace})
