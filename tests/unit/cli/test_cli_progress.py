"""How far a long command is: a line now and then in a log, nothing if that was asked for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from cortado.store.cli import progress
from cortado.store.cli.progress import LINE_EVERY_S, showing_progress
from cortado.store.transfer.progress import Progress


def shown(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, quiet: bool) -> str:
    now_s = 0.0
    monkeypatch.setattr(progress, "time", SimpleNamespace(monotonic=lambda: now_s))
    with showing_progress(quiet=quiet) as report:
        for step in range(1, 21):
            now_s += LINE_EVERY_S / 8
            report(Progress("shop.[orders]", step * 100_000, step // 10, done=step, total=19 if step > 8 else 0))
    out, err = capsys.readouterr()
    assert out == ""
    return err


def test_a_log_gets_a_line_every_few_seconds(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert shown(monkeypatch, capsys, quiet=False).splitlines() == [
        "shop.[orders]: 800,000 rows",
        "shop.[orders]: 1,600,000 rows, 1 bad, 84%",
    ]


def test_quiet_is_quiet(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert shown(monkeypatch, capsys, quiet=True) == ""


def test_a_terminal_gets_a_bar_with_the_name_as_it_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    with showing_progress(quiet=False) as report:
        report(Progress("shop.[orders]", 50, 3, done=50, total=100))
    assert "shop.[orders]" in capsys.readouterr().err
