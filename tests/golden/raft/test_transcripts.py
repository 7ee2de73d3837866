"""The protocol as text: each file of ``transcripts/`` is a scenario. Its commands are run, and the output is compared.

A difference is a change of the log's behaviour. If it is intended, ``PYTHONPATH=tests python
tests/golden/raft/test_transcripts.py`` writes the files anew; ``transcripts/README.md`` says how they are read.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from cortado.raft.elections import Elections
from cortado.raft.following import Following
from cortado.raft.outbox import AT_ONCE, Outbox
from cortado.raft.standing import Standing
from support import raft_script
from support.raft_script import Scene, render

FOLDER = Path(__file__).with_name("transcripts")
TRANSCRIPTS = sorted(FOLDER.glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_what_happens_is_what_the_transcript_says(path: Path) -> None:
    text = path.read_text()
    assert render(text) == text


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_a_transcript_begins_with_what_it_teaches_and_is_short(path: Path) -> None:
    text = path.read_text()
    assert text.startswith("# ")
    assert text.count("\n") <= 120, "it is read in a minute"
    assert f"({path.name})" in (FOLDER / "README.md").read_text()


def _leaves_at_once(self, to, message, sent_ms, needs=AT_ONCE, original=Outbox.put) -> None:
    original(self, to, message, sent_ms, AT_ONCE)


def _take_untrimmed(self, sender, prev, records, commit_index) -> None:
    self._core.engine.receive_entries(sender, prev, records, commit_index)


@pytest.mark.parametrize(
    ("owner", "name", "without", "shown_by"),
    [
        (Outbox, "put", _leaves_at_once, "05-acknowledged-after-the-sync"),
        (Following, "_take", _take_untrimmed, "14-late-messages"),
        (Standing, "may_speak", lambda *_: True, "11-strangers"),
        (Elections, "_follows_a_leader", lambda _: False, "12-terms-out-of-bounds"),
    ],
)
def test_a_rule_that_is_switched_off_changes_its_transcript(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str, without: object, shown_by: str
) -> None:
    text = (FOLDER / f"{shown_by}.txt").read_text()
    monkeypatch.setattr(owner, name, without)
    try:
        now = render(text)
    except ValueError as ended:
        # A replica stopped, and can't be moved any more.
        now = str(ended)
    assert now != text


def test_every_command_is_described() -> None:
    commands = {name.removeprefix("_do_") for name in vars(Scene) if name.startswith("_do_")}
    described = set(re.findall(r"``([a-z]+)", raft_script.__doc__ or ""))
    assert commands | {"group", "quietly"} <= described


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("jump n1", "there is no command jump"),
        ("store n7", "there is no 'n7', or it is down"),
        ("deliver n7 -> n1", "there is no 'n7'"),
        ("drop n1 -> n2 parcel", "no message is a parcel"),
        ("forge n9 -> n1 parcel 7", "parcel cannot be forged"),
        ("fetch n1", "nothing is offered to n1"),
        ("quietly", "quietly what"),
        ("group 0", "a group has a voter at least"),
    ],
)
def test_a_command_that_cannot_be_run_is_refused_with_its_line(command: str, problem: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"line 2, {command!r}: {problem}")):
        render(f"group 3\n{command}\n")


if __name__ == "__main__":
    for each in TRANSCRIPTS:
        each.write_text(render(each.read_text()))
