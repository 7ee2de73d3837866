"""The API's reference has everything that the API has, and says something of each.

``make proto-check`` generates it anew, and so checks that it agrees with the ``.proto`` files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, FileDescriptor

ROOT = Path(__file__).parents[2]
REFERENCE = ROOT / "docs/api"
NAMES = sorted(path.stem for path in (ROOT / "proto/v1").glob("*.proto"))

ROW = re.compile(r"^\| `(\w+)`(?: = (\d+))? \| (.*?) \| (.*) \|$")


def sections(name: str) -> dict[str, str]:
    """Return the text under each heading of a page."""
    found = re.split(r"^#{2,3} (.+)$", (REFERENCE / f"{name}.md").read_text(), flags=re.MULTILINE)
    return dict(zip(found[1::2], (each.strip() for each in found[2::2]), strict=True))


def rows(section: str) -> dict[str, str]:
    """Return the text of each field or value."""
    return {found[1]: found[4] for line in section.splitlines() if (found := ROW.match(line)) is not None}


def messages(within: FileDescriptor) -> Iterator[tuple[str, Descriptor]]:
    for each in within.message_types_by_name.values():
        yield each.name, each


def declared(name: str) -> FileDescriptor:
    found: FileDescriptor = import_module(f"cortado.proto.v1.{name}_pb2").DESCRIPTOR
    return found


@pytest.mark.parametrize("name", NAMES)
def test_everything_that_is_declared_is_described(name: str) -> None:
    file, found = declared(name), sections(name)
    for service in file.services_by_name.values():
        assert found[f"Service {service.name}"], f"{service.full_name} has no comment"
        for method in service.methods:
            call, said = found[f"{service.name}.{method.name}"].partition("\n\n")[::2]
            assert "→" in call
            assert said, f"{method.full_name} has no comment"
    for heading, message in messages(file):
        text = found[heading].partition("| field |")[0]
        assert text.strip(), f"{message.full_name} has no comment"
        said_of = rows(found[heading])
        for field in message.fields:
            assert said_of[field.name].strip(), f"{message.full_name}.{field.name} has no comment"
    for enum in file.enum_types_by_name.values():
        assert found[enum.name].partition("| value |")[0].strip(), f"{enum.full_name} has no comment"
        said_of = rows(found[enum.name])
        for value in enum.values:
            assert said_of[value.name].strip(), f"{enum.full_name}.{value.name} has no comment"


def test_each_file_has_a_page_and_each_page_a_file() -> None:
    assert sorted(path.stem for path in REFERENCE.glob("*.md")) == sorted([*NAMES, "README"])


def test_the_index_leads_to_every_call() -> None:
    index = (REFERENCE / "README.md").read_text()
    for name in NAMES:
        for service in declared(name).services_by_name.values():
            for method in service.methods:
                link = f"[`{method.name}`]({name}.md#{service.name.lower()}{method.name.lower()})"
                assert link in index
