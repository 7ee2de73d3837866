"""``cortado schema``: the schema registry."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from cortado.errors import InvalidArgument, NotFound
from cortado.store.cli.answers import Answer, Rows, Said
from cortado.store.cli.common_options import refuse_beside
from cortado.store.cli.completing import complete_subjects
from cortado.store.cli.failures import INCOMPATIBLE, OK
from cortado.store.cli.input import read_text
from cortado.store.cli.numbers import whole
from cortado.store.cli.options import Argument, Option
from cortado.store.cli.render import Renderer, count
from cortado.store.cli.session import Session
from cortado.store.cli.tree import command

if TYPE_CHECKING:
    from cortado.schema.model import Schema
    from cortado.store.client import Client, SchemaVersion

SubjectArgument: TypeAlias = Annotated[
    str,
    Argument(help="The subject, by default the table's name.", metavar="SUBJECT", completion=complete_subjects),
]
FileArgument: TypeAlias = Annotated[
    str, Argument(help="A file with an Avro schema in JSON; - for standard input.", metavar="FILE")
]
ModeArgument: TypeAlias = Annotated[
    str | None,
    Argument(
        help="The new mode: NONE, BACKWARD, BACKWARD_TRANSITIVE, FORWARD, FORWARD_TRANSITIVE, FULL or FULL_TRANSITIVE; "
        "DEFAULT removes its own mode.",
        metavar="MODE",
    ),
]
NewOption: TypeAlias = Annotated[bool, Option("--new", help="The subject may have no version yet.")]


@command(
    "schema register",
    examples="""
        cortado schema register flights.airlines airlines.avsc
        echo '{"type":"record","name":"A","fields":[{"name":"id","type":"long"}]}' | cortado schema register a -
    """,
)
def register(session: Session, subject: SubjectArgument, file: FileArgument) -> Answer:
    """Register a version of a subject's schema. The same schema again gives the same version.

    A schema that the subject's compatibility mode does not allow is refused, with every reason (exit code 5).
    """
    text = read_text(file)
    with session.client() as client:
        found = client.schemas.register(subject, text)
    version = f"version {found.version} of {subject}, with id {found.schema_id}"
    done = f"registered {version}" if found.created else f"already registered: {version}"
    return Said(done, _version_json(found) | {"created": found.created})


@command(
    "schema compatibility",
    examples="""
        cortado schema compatibility flights.airlines
        cortado schema compatibility flights.airlines FULL_TRANSITIVE
        cortado schema compatibility flights.airlines DEFAULT
        cortado schema compatibility flights.gates NONE --new
        cortado schema compatibility --default FULL_TRANSITIVE
    """,
)
def compatibility(
    session: Session,
    subject: Annotated[
        str | None,
        Argument(help="The subject; none with --default.", metavar="SUBJECT", completion=complete_subjects),
    ] = None,
    mode: ModeArgument = None,
    default: Annotated[
        bool, Option("--default", help="Show or set the mode of all subjects that have none of their own.")
    ] = False,
    new: NewOption = False,
) -> Answer:
    """Show a subject's compatibility mode, or set it for future versions. DEFAULT removes its own mode.

    A subject without a version is not found (exit code 3), to catch mistyped names; --new allows it. With --default the
    mode of all subjects without one of their own is shown or set: BACKWARD_TRANSITIVE until it is set, and again after
    DEFAULT.
    """
    if default:
        if mode is not None or not (subject is None or _is_mode(subject)):
            raise InvalidArgument("SUBJECT", "must not be given together with --default", repr(subject))
        refuse_beside("--default", {"--new": new})
        return _default_compatibility(session, subject)
    if subject is None:
        raise InvalidArgument("SUBJECT", "must be given, or else --default")
    with session.client() as client:
        schemas = client.schemas
        if mode is None:
            found = schemas.compatibility(subject)
        else:
            if not new:
                _require_version(client, subject)
            found = schemas.set_compatibility(subject, _given_mode(mode))
    return Said(f"{subject}: {found}", {"subject": subject, "mode": str(found)})


def _default_compatibility(session: Session, mode: str | None) -> Answer:
    with session.client() as client:
        schemas = client.schemas
        if mode is None:
            found = schemas.default_compatibility()
        else:
            found = schemas.set_default_compatibility(_given_mode(mode))
    return Said(f"all subjects without a mode of their own: {found}", {"subject": None, "mode": str(found)})


def _is_mode(text: str) -> bool:
    from cortado.schema.compatibility import CompatibilityMode

    return text.upper() in (*CompatibilityMode, "DEFAULT")


def _given_mode(mode: str) -> str | None:
    return None if mode.upper() == "DEFAULT" else mode


def _require_version(client: Client, subject: str) -> None:
    if all(each.subject != subject for each in client.schemas.subjects()):
        raise NotFound("subject", f"{subject}: it has no version yet (--new allows that)")


@dataclass(frozen=True, slots=True)
class _Declaration:
    """A schema, ready to be changed and registered again."""

    record: dict[str, Any]
    exit_code: int = OK

    def as_json(self) -> list[Any]:
        return [self.record]

    def as_table(self, show: Renderer) -> None:
        show.json(self.record["schema"], indent=2)


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
    subject: Annotated[
        str | None, Argument(help="The subject; or give --id.", metavar="SUBJECT", completion=complete_subjects)
    ] = None,
    version: Annotated[
        int | None, Option(help="The version.", show_default="the newest", parser=whole("--version", 1), metavar="N")
    ] = None,
    schema_id: Annotated[
        int | None, Option("--id", help="The schema's id.", parser=whole("--id", 1), metavar="N")
    ] = None,
) -> Answer:
    """Print a schema's declaration, ready to be changed and registered again."""
    if subject is None and schema_id is None:
        raise InvalidArgument("SUBJECT", "must be given, or else --id")
    if schema_id is not None and (subject is not None or version is not None):
        other = "SUBJECT" if subject is not None else "--version"
        raise InvalidArgument("--id", f"must not be given together with {other}: it names one schema in all subjects")
    with session.client() as client:
        if subject is not None:
            return _Declaration(_version_json(client.schemas.get(subject, version)))
        return _Declaration(_schema_json(schema_id or 0, client.schemas.get_by_id(schema_id or 0)))


@command(
    "schema list",
    examples="""
        cortado schema list
        cortado schema list flights.airlines
        cortado schema list flights.airlines --deleted
    """,
)
def list_schemas(
    session: Session,
    subject: Annotated[
        str | None,
        Argument(help="List this subject's versions instead.", metavar="SUBJECT", completion=complete_subjects),
    ] = None,
    deleted: Annotated[bool, Option("--deleted", help="Include softly deleted ones.")] = False,
) -> Answer:
    """List the subjects, or the versions of one."""
    with session.client() as client:
        if subject is not None:
            versions = client.schemas.versions(subject, include_deleted=deleted)
            rows = [(_shown_version(each), each.schema_id, each.fingerprint) for each in versions]
            return Rows(("version", "id", "fingerprint"), rows, map(_version_json, versions))
        subjects = client.schemas.subjects(include_deleted=deleted)
    return Rows(
        ("subject", "versions", "compatibility", "tables"),
        [(each.subject, each.versions, str(each.mode), " ".join(each.tables)) for each in subjects],
        [
            {"subject": each.subject, "versions": each.versions, "mode": str(each.mode), "tables": [*each.tables]}
            for each in subjects
        ],
    )


@command(
    "schema test-compatibility",
    examples="""
        cortado schema test-compatibility flights.airlines airlines-2.avsc
        cortado schema test-compatibility flights.airlines - --mode FULL < airlines-2.avsc
        cortado schema test-compatibility flights.gates gates.avsc --new
    """,
)
def test_compatibility(
    session: Session,
    subject: SubjectArgument,
    file: FileArgument,
    mode: Annotated[
        str | None, Option(help="Test under this mode.", show_default="the subject's", metavar="MODE")
    ] = None,
    new: NewOption = False,
) -> Answer:
    """Test whether a schema could be registered, and change nothing. Exit code 5 if it would be refused.

    A subject without a version is not found (exit code 3), to catch mistyped names; --new allows it.
    """
    text = read_text(file)
    with session.client() as client:
        found = client.schemas.test_compatibility(subject, text, mode)
        # After the test: an invalid schema is refused as such, for every subject.
        if not new:
            _require_version(client, subject)
    problems = found.incompatibilities
    number = count(len(problems), "incompatibility", "incompatibilities")
    return Rows(
        ("version", "path", "kind", "reason"),
        [(each.version, each.path, each.kind, each.message) for each in problems],
        [
            {
                "compatible": found.compatible,
                "mode": str(found.mode),
                "incompatibilities": [dataclasses.asdict(each) for each in problems],
            }
        ],
        head=f"{'compatible' if found.compatible else number} with {subject} ({found.mode})",
        exit_code=OK if found.compatible else INCOMPATIBLE,
    )


@command(
    "schema delete",
    examples="""
        cortado schema delete topic-value --version 2
        cortado schema delete topic-value
        cortado schema delete topic-value --permanent
    """,
)
def delete(
    session: Session,
    subject: Annotated[
        str, Argument(help="The subject. No table may follow it.", metavar="SUBJECT", completion=complete_subjects)
    ],
    version: Annotated[
        int | None,
        Option(help="The version.", show_default="all of them", parser=whole("--version", 1), metavar="N"),
    ] = None,
    permanent: Annotated[
        bool, Option("--permanent", help="Remove for good the versions that were deleted before.")
    ] = False,
) -> Answer:
    """Delete a version of a subject, or all versions.

    Lists and compatibility checks then ignore it; --permanent removes it for good. Numbers of versions are never used
    again, and schemas can still be read by their ids.
    """
    with session.client() as client:
        found = client.schemas.delete(subject, version, permanent=permanent)
    done = f"{'forgot' if permanent else 'deleted'} {_listed(found)} of {subject}"
    return Said(done, {"subject": subject, "versions": found, "permanent": permanent})


def _listed(versions: list[int]) -> str:
    return f"version{'s' * (len(versions) > 1)} {', '.join(map(str, versions))}"


def _shown_version(found: SchemaVersion) -> str:
    return f"{found.version} (deleted)" if found.deleted else str(found.version)


def _version_json(found: SchemaVersion) -> dict[str, Any]:
    return {
        "schema_id": found.schema_id,
        "subject": found.subject,
        "version": found.version,
        "fingerprint": found.fingerprint,
        "avro_fingerprints": found.avro_fingerprints(),
        "schema": json.loads(found.schema),
        **({"deleted": True} if found.deleted else {}),
    }


def _schema_json(schema_id: int, schema: Schema) -> dict[str, Any]:
    from cortado.store.client.known_schemas import avro_fingerprints

    return {
        "schema_id": schema_id,
        "fingerprint": schema.fingerprint.hex(),
        "avro_fingerprints": avro_fingerprints(schema),
        "schema": json.loads(schema.text),
    }
