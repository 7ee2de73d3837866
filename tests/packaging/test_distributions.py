"""The distributions: complete, the same by either way of building, and described."""

from __future__ import annotations

import tarfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path

from markdown_it import MarkdownIt

from cortado.extras import DISTRIBUTION
from cortado.store.local_cluster.demo import TABLES
from support.environments import PROJECT, ROOT, SUPPORTED
from support.packages import Packages, build

# The places of the repository's folders in a wheel.
INSTALLED_AS = {
    "proto": "cortado/proto",
    "raft": "cortado/raft",
    "schema": "cortado/schema",
    "spark_connector": "pyspark_cortado",
    "store": "cortado/store",
}
VERSION = PROJECT["project"]["version"]


def contents(wheel: Path) -> dict[str, bytes]:
    """Its files by name; without RECORD, which lists the others."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist() if not name.endswith("/RECORD")}


def metadata(wheel: Path) -> Message:
    return message_from_string(contents(wheel)[f"{DISTRIBUTION}-{VERSION}.dist-info/METADATA"].decode())


def test_a_wheel_of_the_source_is_the_one_of_the_sdist(packages: Packages, source: Path, tmp_path: Path) -> None:
    build(source, tmp_path / "out", "--wheel")
    (wheel,) = (tmp_path / "out").glob("*.whl")
    assert contents(wheel) == contents(packages.wheel)


def test_a_wheel_has_every_file_of_the_packages_and_no_other(packages: Packages, source: Path) -> None:
    # The folders there are links to the others.
    wanted = {f"cortado/{path.name}" for path in (source / "src/cortado").iterdir() if path.is_file()}
    for folder, installed in {**INSTALLED_AS, "src/cortado/errors": "cortado/errors"}.items():
        for path in (source / folder).rglob("*"):
            if path.is_file() and path.suffix != ".md":
                wanted.add(f"{installed}/{path.relative_to(source / folder)}")
    found = {name for name in contents(packages.wheel) if ".dist-info/" not in name}
    assert found == wanted


def test_a_wheel_brings_types_and_what_stubs_are_made_of(packages: Packages) -> None:
    found = contents(packages.wheel)
    assert "cortado/py.typed" in found
    assert {f"cortado/store/local_cluster/demo/{each.name}.avsc" for each in TABLES} <= set(found)
    for name in found:
        if name.endswith("_pb2.py"):
            assert name.replace("_pb2.py", ".proto") in found
            assert name.replace(".py", ".pyi") in found


def test_an_sdist_has_the_documentation(packages: Packages, source: Path) -> None:
    with tarfile.open(packages.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    docs = {str(path.relative_to(source)) for path in (source / "docs").rglob("*") if path.is_file()}
    assert docs <= names
    assert {"README.md", "pyproject.toml", "src/cortado/store/cli/__init__.py"} <= names


def test_metadata_names_what_the_project_names(packages: Packages) -> None:
    found = metadata(packages.wheel)
    assert (found["Name"], found["Version"]) == (DISTRIBUTION, VERSION)
    assert dict(each.split(", ") for each in found.get_all("Project-URL", [])) == PROJECT["project"].get("urls", {})
    assert found["Summary"] == PROJECT["project"]["description"]
    assert found["Requires-Python"] == f">={'.'.join(map(str, SUPPORTED[0]))}"
    assert set(found.get_all("Provides-Extra", [])) == set(PROJECT["project"]["optional-dependencies"])
    assert found.get_all("Classifier") == PROJECT["project"]["classifiers"]
    assert found["Description-Content-Type"] == "text/markdown"
    assert found.get_payload() == (ROOT / "README.md").read_text()


def test_the_readme_renders(packages: Packages) -> None:
    payload = metadata(packages.wheel).get_payload()
    assert isinstance(payload, str)
    html = MarkdownIt("commonmark").enable("table").render(payload)
    assert "<h1>Cortado</h1>" in html
    # A table or a fence that is not closed would come out as text.
    assert "```" not in html
    assert "| ---" not in html
