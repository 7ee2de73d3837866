"""A word of another system is refused with the one that was meant."""

from __future__ import annotations

import pytest

from cortado.store.cli.app import run
from cortado.store.cli.other_words import COMMANDS, MOVED, OPTIONS, meant
from support.commands import commands, found


def options_of_all() -> set[str]:
    return {name for _, node in commands() for each in node.params for name in each.opts if name.startswith("-")}


def names_of_all() -> set[str]:
    return {word for words, _ in commands() for word in words.split()} | {"--version"}


def test_every_suggestion_is_an_option_or_a_command_that_there_is() -> None:
    assert {each for suggested in OPTIONS.values() for each in suggested} <= options_of_all()
    assert {each for suggested in COMMANDS.values() for each in suggested} <= names_of_all()


@pytest.mark.parametrize(
    ("words", "suggestion"),
    [
        (["scan", "d.t", "--where", "n > 1"], "no such option --where; did you mean --filter?"),
        (["scan", "d.t", "--where=n > 1"], "no such option --where; did you mean --filter?"),
        (["scan", "d.t", "--select", "a,b"], "no such option --select; did you mean --columns?"),
        (["scan", "d.t", "--desc"], "no such option --desc; did you mean --reverse?"),
        (["get", "d.t", "1", "--as-of", "-5m"], "no such option --as-of; did you mean --at?"),
        (["watch", "table", "d.t", "--since", "now"], "no such option --since; did you mean --after?"),
        (["kv", "put", "n", "k", "v", "--nx"], "no such option --nx; did you mean --if-absent?"),
        (["put", "d.t", "{}", "--nx"], "no such option --nx; did you mean --if-absent?"),
        (["put", "d.t", "{}", "--mode", "insert"], "no such option --mode; did you mean --if-absent?"),
        (["delete", "d.t", "1", "--if-match", "e"], "no such option --if-match; did you mean --if-etag?"),
        (["doctor", "--cluster", "d"], "no such option --cluster; did you mean --dev?"),
        (["get", "d.t", "1", "--endpoints", "a:1"], "no such option --endpoints; did you mean --endpoint?"),
        (["--host", "a:1", "get", "d.t", "1"], "no such option --host; did you mean --endpoint?"),
        (["get", "d.t", "1", "--cacert", "x"], "no such option --cacert; did you mean --tls-ca?"),
        (["scan", "d.t", "--sort", "a"], "no such option --sort; did you mean --index?"),
        (["scan", "d.t", "--prefix", "a"], "no such option --prefix; did you mean --start?"),
        (["scan", "d.t", "--from", "a"], "no such option --from; did you mean --start?"),
        (["watch", "table", "d.t", "--to", "a"], "no such option --to; did you mean --end?"),
        (["scan", "d.t", "--format", "json"], "no such option --format; did you mean --output?"),
        # A slip of the fingers, and an unknown word.
        (["scan", "d.t", "--fliter", "x"], "no such option --fliter; did you mean --filter?"),
        (["scan", "d.t", "--zzzzzz", "x"], "no such option --zzzzzz"),
        (["select", "d.t"], "there is no command 'select'; did you mean scan?"),
        (["incr", "n", "k"], "there is no command 'incr'; did you mean add?"),
        (["kv", "incrby", "n", "k"], "there is no command 'kv incrby'; did you mean add?"),
        (["table", "delete", "d.t"], "there is no command 'table delete'; did you mean drop?"),
        (["describe", "d.t"], "there is no command 'describe'; did you mean table?"),
        (["drop", "table", "d.t"], "there is no command 'drop'; did you mean table?"),
        (["version"], "there is no command 'version'; did you mean --version?"),
        # Commands that have moved.
        (["count", "d.t"], "there is no command 'count'; did you mean cortado scan --count?"),
        (["clock", "now"], "there is no command 'clock now'; did you mean cortado now?"),
        (["kv", "drop", "n"], "there is no command 'kv drop'; did you mean cortado namespace drop?"),
        (["cluster", "up"], "there is no command 'cluster'; did you mean cortado dev?"),
    ],
)
def test_what_was_meant_is_suggested(words: list[str], suggestion: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    shown = capsys.readouterr().err
    assert suggestion in shown
    assert shown.count("\n") == 1
    assert ("did you mean" in shown) == ("did you mean" in suggestion)


def test_what_has_moved_is_there_and_nowhere_else() -> None:
    there = {words.partition(" ")[2] for words, _ in commands()}
    for before, now in MOVED.items():
        node, options = found(now.split(), now)
        assert set(options) <= {name for each in node.params for name in each.opts}
        assert not any(f"{each} ".startswith(f"{before} ") for each in there)


def test_the_first_word_that_a_command_has_is_suggested() -> None:
    words = {"--x": ("--a", "--b")}
    assert meant("--x", words, ["--b", "--a"]) == "--a"
    assert meant("--x", words, ["--b"]) == "--b"
    assert meant("--x", words, ["--other"]) == ""


@pytest.mark.parametrize("words", [["recover"], ["add", "d.t", "1"], ["table", "create", "d.t"]])
def test_a_required_option_that_is_missing_is_wrong_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(words) == 2
    assert "Missing option" in capsys.readouterr().err
