"""The counter of roundabout sentences finds the sentences of each kind of file, and knows plain ones."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

PROSE = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "prose.py"))


def counted(folder: Path, name: str, text: str) -> list[tuple[int, bool]]:
    """Return the line of each sentence of a file, and whether it is roundabout."""
    file = folder / name
    file.write_text(text)
    return [(each.line, each.is_roundabout) for each in PROSE["sentences"](file)]


@pytest.mark.parametrize(
    "text",
    [
        "Who is unknown is refused at once.",
        "Nobody reads the versions below it.",
        "It returns what a reader needs for that.",
        "The keys of which none is damaged.",
        "It is empty where there is no key.",
        "Of that name there are none.",
        "Where a leader is known, it is asked.",
        "The leader " + 12 * "sends entries " + "again.",
    ],
)
def test_a_clause_for_a_noun_and_a_long_sentence_are_roundabout(tmp_path: Path, text: str) -> None:
    assert counted(tmp_path, "page.md", text) == [(1, True)]


@pytest.mark.parametrize(
    "text",
    [
        "Unknown callers are refused at once.",
        "Callers who wait are served in turn.",
        "The table whose index is built.",
        "It returns None if the key is absent.",
        "The file tells where the next page begins.",
        "What is a learner, and who votes?",
        "The field `what is it` is [a link](who-is-it.md).",
    ],
)
def test_plain_sentences_are_not(tmp_path: Path, text: str) -> None:
    assert counted(tmp_path, "page.md", text) == [(1, False)]


def test_docstrings_and_comments_of_python_are_read_and_nothing_else(tmp_path: Path) -> None:
    text = (
        '"""Who reads this knows it."""\n'
        'TEXT = """Nobody reads this text."""\n'
        "def f():\n"
        '    """Return the number of rows.\n\n    Nobody else calls it.\n    """\n'
        "    # What is read here\n"
        "    # is read twice.\n"
        "    return 1  # Nobody needs more than one.\n"
    )
    assert counted(tmp_path, "module.py", text) == [(1, True), (4, False), (6, True), (8, True), (10, True)]


def test_a_table_in_columns_is_no_sentence(tmp_path: Path) -> None:
    text = '"""The steps of a vote.\n\n    who    what it is\n    n1     what a leader sends\n"""\n'
    assert counted(tmp_path, "module.py", text) == [(1, False)]


def test_comments_of_protos_are_read(tmp_path: Path) -> None:
    text = (
        'syntax = "proto3";\n// Who votes in a group.\nmessage M {\n  // The number of rows.\n  uint32 rows = 1;\n}\n'
    )
    assert counted(tmp_path, "m.proto", text) == [(2, True), (4, False)]


def test_headings_and_code_of_pages_are_left_out_and_cells_are_read(tmp_path: Path) -> None:
    text = "# What it is\n\n```sh\nwho is here\n```\n\n| a | What a node does when it starts. |\n"
    assert counted(tmp_path, "page.md", text) == [(7, True)]


def test_generated_stubs_and_links_are_left_out(tmp_path: Path) -> None:
    for name in ("m_pb2.py", "module.py", "page.txt"):
        (tmp_path / name).write_text("# Nobody reads this file.\n")
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    assert list(PROSE["files"]([tmp_path])) == [tmp_path / "module.py"]
    (tmp_path / "m_pb2.py").unlink()
    assert PROSE["share"](tmp_path) == 100.0
