"""Deleting a subject's versions, in the two steps of Confluent's registry.

::

    registered --soft--> deleted --permanent--> forgotten, but for its number

A softly deleted version is in no list and no comparison; registering its schema again makes a new version. Deleting it
permanently takes it out of its subject. Its number stays taken, and its schema stays: an id names a text for ever, and
documents of any age and place may hold it.

No version of a subject that a table follows can be deleted, for rows may be written with any of them. A dropped table
counts until it is forgotten: it may come back.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from cortado.errors import InvalidArgument, NotFound
from cortado.store.catalog import stored
from cortado.store.catalog.catalog import Catalog
from cortado.store.catalog.descriptors import SubjectState, SubjectVersion
from cortado.store.keys import names
from cortado.store.mvcc.evaluation import Evaluation
from cortado.store.mvcc.mutations import Mutations


@dataclass(frozen=True, slots=True)
class VersionsDeleted:
    """The reply of :func:`delete_versions`."""

    versions: tuple[int, ...]


def delete_versions(catalog: Catalog, subject: str, version: int, *, permanent: bool) -> Evaluation:
    """Delete one version of ``subject``, or all for 0, softly or permanently; replies VersionsDeleted.

    Raises NotFound, and InvalidArgument (a table follows the subject, or a version to be forgotten is not deleted yet).
    """
    state = catalog.find_subject(names.check_subject(subject))
    if state is None or not state.versions or not (permanent or state.live):
        raise NotFound("subject", subject)
    chosen = _chosen(state, version, permanent=permanent)
    tables = catalog.tables_of(subject)
    if tables:
        raise InvalidArgument("subject", f"cannot lose a version: table {tables[0].full_name} follows it", subject)
    dropped = catalog.dropped_tables_of(subject)
    if dropped:
        problem = f"cannot lose a version: the dropped table {dropped[0].full_name} follows it, and may be undropped"
        raise InvalidArgument("subject", problem, subject)
    if permanent:
        kept = tuple(each for each in state.versions if each not in chosen)
        state = replace(state, versions=kept, mode=state.mode if version else None)
    else:
        marked = (replace(each, deleted=True) if each in chosen else each for each in state.versions)
        state = replace(state, versions=tuple(marked))
    mutations = Mutations()
    put_subject(mutations, state)
    mutations.put(stored.COUNTERS_KEY, stored.encode_counters(catalog.counters))
    return Evaluation(mutations, VersionsDeleted(tuple(each.version for each in chosen)))


def put_subject(mutations: Mutations, state: SubjectState) -> None:
    """Store a subject; without versions and mode, only the number that comes next.

    That number is read while there is no such subject. It stays if the subject comes back, to be overwritten when it
    goes again.
    """
    if state.versions or state.mode is not None:
        mutations.put(stored.subject_key(state.subject), stored.encode_subject(state))
        return
    mutations.delete(stored.subject_key(state.subject))
    if state.next_version > 1:
        mutations.put(stored.deleted_subject_key(state.subject), stored.encode_subject(state))


def _chosen(state: SubjectState, version: int, *, permanent: bool) -> list[SubjectVersion]:
    found = [each for each in state.versions if version in (0, each.version) and (permanent or not each.deleted)]
    if not found:
        raise NotFound("schema", f"version {version} of subject {state.subject}")
    early = [str(each.version) for each in found if permanent and not each.deleted]
    if early:
        problem = f"removes only deleted versions, and version {early[0]} of subject {state.subject} is not"
        raise InvalidArgument("permanent", problem)
    return found
