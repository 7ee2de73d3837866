"""The pages of the formats name the numbers that the code writes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cortado.raft import records
from cortado.store.backup import part_file
from cortado.store.engine import data_directory
from cortado.store.log_files import segments
from cortado.store.peers import frames, versions
from cortado.store.replica.apply import applied_state
from cortado.store.replica.snapshots import file_format, marker
from cortado.store.replica.write import log_entry
from cortado.store.transfer import manifest
from cortado.store.wire import api_level

FORMATS = Path(__file__).parents[2] / "docs" / "formats"
NUMBERS = {
    "the data directory": data_directory.FORMAT_VERSION,
    "the applied state": applied_state.FORMAT,
    "the log's hard state, and the bytes of stored entries": records.FORMAT,
    "log files": segments.FORMAT,
    "log entries": log_entry.FORMAT,
    "snapshots on their way": file_format.FORMAT,
    "backups": part_file.FORMAT,
    "exports of a directory": manifest.VERSION,
    "the mark of an installation": marker.FORMAT,
    "the frames between nodes": frames.VERSION,
    "the peers' protocol": versions.OURS.newest_protocol,
    "the API": api_level.API_LEVEL,
}


def test_the_list_of_versions_names_each_format_with_its_number() -> None:
    listed = re.findall(r"^\| ([^|]+) \| (\d+) \|", (FORMATS / "versions.md").read_text(), re.MULTILINE)
    assert {what: int(number) for what, number in listed} == NUMBERS


DIRECTORY_PAGE = (FORMATS / "data-directory.md").read_text()
SNAPSHOTS_PAGE = (FORMATS / "snapshots.md").read_text()


@pytest.mark.parametrize(
    ("text", "pattern", "number"),
    [
        (DIRECTORY_PAGE, r"cortado-data (\d+)", data_directory.FORMAT_VERSION),
        (DIRECTORY_PAGE, r"reads version (\d+) only", data_directory.FORMAT_VERSION),
        (data_directory.__doc__, r"cortado-data (\d+)", data_directory.FORMAT_VERSION),
        (SNAPSHOTS_PAGE, r"16 \| format (\d+)", file_format.FORMAT),
        (file_format.__doc__, r"16 \| format (\d+)", file_format.FORMAT),
    ],
    ids=["directory", "refusal", "directory's module", "snapshots", "snapshots' module"],
)
def test_a_picture_shows_the_number_of_today(text: str, pattern: str, number: int) -> None:
    shown = re.findall(pattern, text)
    assert shown
    assert set(map(int, shown)) == {number}


def test_the_list_of_changes_of_the_data_directory_ends_with_the_version_of_today() -> None:
    changes = DIRECTORY_PAGE.partition("## Versions of this format")[2]
    assert [int(each) for each in re.findall(r"^\| (\d+) \|", changes, re.MULTILINE)] == [
        *range(1, data_directory.FORMAT_VERSION + 1)
    ]
