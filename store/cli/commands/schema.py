"""``cortado schema``: the schema registry."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any, TypeAlias

from cortado.errors import InvalidArgument
from cortado.store.cli.failures import INCOMPATIBLE, CheckFailed
from cortado.store.cli.input import read_text
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command
from cortado.store.client import SchemaVersion

SubjectArgument: TypeAlias = Annotated[
    str, Argument(help="The subject, by default named as the table is.", metavar="SUBJECT")
]
FileArgument: TypeAlias = Annotated[
    str, Argument(help="A file with an Avro schema in JSON; - for stdin.", metavar="FILE")
]


@command(
    "schema register",
    examples="""
        cortado schema register flights.airlines airlines.avsc
        echo '{"type":"record","name":"A","fields":[{"name":"id","type":"long"}]}' | cortado schema register a -
    """,
)
def register(session: Session, subject: SubjectArgument, file: FileArgument) -> None:
    """Register a version of a subject's schema. The same schema again gives the same version.

    A schema that the subject's compatibility mode does not allow is refused, with every reason (exit code 5).
    """
    text = read_text(file)
    with session.client() as client:
        found = client.schemas.register(subject, text)
    if session.as_json:
        session.show.json(_version_json(found) | {"created": found.created})
    else:
        done = "is registered" if found.created else "was registered before"
        session.show.line(f"{subject} version {found.version} {done}, with id {found.schema_id}")


@command(
    "schema compatibility",
    examples="""
        cortado schema compatibility flights.airlines
        cortado schema compatibility flights.airlines FULL_TRANSITIVE
    """,
)
def compatibility(
    session: Session,
    subject: SubjectArgument,
    mode: Annotated[
        str | None,
        Argument(
            help="The new mode: NONE, BACKWARD, BACKWARD_TRANSITIVE, FORWARD, FORWARD_TRANSITIVE, FULL or "
            "FULL_TRANSITIVE.",
            metavar="MODE",
        ),
    ] = None,
) -> None:
    """Show a subject's compatibility mode, or set it for the versions to come."""
    with session.client() as client:
        schemas = client.schemas
        found = schemas.compatibility(subject) if mode is None else schemas.set_compatibility(subject, mode)
    if session.as_json:
        session.show.json({"subject": subject, "mode": str(found)})
    else:
        session.show.line(f"{subject}: {found}")


@command(
    "schema get",
    examples="""
        cortado schema get flights.airlines
        cortado schema get flights.airlines --version 1
        cortado schema get --id 7 -o json
    """,
)
def get(
    session: Session,
    subject: Annotated[str | None, Argument(help="The subject; or give --id.", metavar="SUBJECT")] = None,
    version: Annotated[
        int | None,
        Option(help="The version.", show_default="the newest", parser=whole("--version", 1), metavar="N"),
    ] = None,
    schema_id: Annotated[
        int | None, Option("--id", help="The schema's id.", parser=whole("--id", 1), metavar="N")
    ] = None,
) -> None:
    """Print a schema's declaration, ready to be changed and registered again."""
    if (subject is None) == (schema_id is None):
        raise InvalidArgument("SUBJECT", "must be given, or else --id")
    with session.client() as client:
        if subject is not None:
            found = client.schemas.get(subject, version)
        else:
            found = client.schemas.version_by_id(schema_id or 0)[0]
    if session.as_json:
        session.show.json(_version_json(found))
    else:
        session.show.json(json.loads(found.schema), indent=2)


@command(
    "schema list",
    examples="""
        cortado schema list
        cortado schema list flights.airlines
    """,
)
def list_schemas(
    session: Session,
    subject: Annotated[str | None, Argument(help="List this subject's versions instead.", metavar="SUBJECT")] = None,
) -> None:
    """List the subjects, or the versions of one."""
    with session.client() as client:
        if subject is None:
            _show_subjects(session, client.schemas.subjects())
        else:
            _show_versions(session, client.schemas.versions(subject))


@command(
    "schema check",
    examples="""
        cortado schema check flights.airlines airlines-2.avsc
        cortado schema check flights.airlines - --mode FULL < airlines-2.avsc
    """,
)
def check(
    session: Session,
    subject: SubjectArgument,
    file: FileArgument,
    mode: Annotated[
        str | None, Option(help="Check under this mode.", show_default="the subject's", metavar="MODE")
    ] = None,
) -> None:
    """Say what registering would say, and change nothing. Exit code 5 where it would be refused."""
    text = read_text(file)
    with session.client() as client:
        found = client.schemas.check(subject, text, mode)
    if session.as_json:
        problems = [dataclasses.asdict(each) for each in found.incompatibilities]
        session.show.json({"compatible": found.compatible, "mode": str(found.mode), "incompatibilities": problems})
    elif found.compatible:
        session.show.line(f"compatible with {subject} ({found.mode})")
    else:
        number = count(len(found.incompatibilities), "incompatibility", "incompatibilities")
        session.show.line(f"{number} with {subject} ({found.mode})")
        session.show.table(
            ("version", "path", "kind", "reason"),
            [(each.version, each.path, each.kind, each.message) for each in found.incompatibilities],
        )
    if not found.compatible:
        raise CheckFailed(INCOMPATIBLE)


def _show_subjects(session: Session, subjects: list[Any]) -> None:
    if session.as_json:
        for each in subjects:
            session.show.json(
                {"subject": each.subject, "versions": each.versions, "mode": str(each.mode), "tables": [*each.tables]}
            )
        return
    rows = [(each.subject, each.versions, str(each.mode), " ".join(each.tables)) for each in subjects]
    session.show.table(("subject", "versions", "compatibility", "tables"), rows)


def _show_versions(session: Session, versions: list[SchemaVersion]) -> None:
    if session.as_json:
        for each in versions:
            session.show.json(_version_json(each))
        return
    rows = [(each.version, each.schema_id, each.fingerprint) for each in versions]
    session.show.table(("version", "id", "fingerprint"), rows)


def _version_json(found: SchemaVersion) -> dict[str, Any]:
    return {
        "schema_id": found.schema_id,
        "subject": found.subject,
        "version": found.version,
        "fingerprint": found.fingerprint,
        "avro_fingerprints": found.avro_fingerprints(),
        "schema": json.loads(found.schema),
    }
