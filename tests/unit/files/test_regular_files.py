"""An object in the place of a small file can neither hang a process, nor fill it, nor lead it elsewhere."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest

from cortado.store.files.regular_files import (
    create_anew,
    is_of_another_user,
    open_regular,
    others_may_write,
    read_regular,
    replace_small,
)


def make_socket(path: Path) -> None:
    with closing(socket.socket(socket.AF_UNIX)) as bound:
        bound.bind(str(path))


STRANGE: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, "it is no regular file"),
    "socket": (make_socket, "it is no regular file"),
    "directory": (Path.mkdir, "Is a directory"),
    "device behind a link": (lambda path: path.symlink_to("/dev/zero"), "it is no regular file"),
    "nothing": (lambda path: None, "No such file or directory"),
    "link to nothing": (lambda path: path.symlink_to(path.with_name("none")), "No such file or directory"),
}


@pytest.mark.parametrize("kind", STRANGE)
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str, flags: int) -> None:
    make, problem = STRANGE[kind]
    make(tmp_path / "f")
    with pytest.raises(OSError, match=problem):
        open_regular(tmp_path / "f", flags, follows_links=True)
    with pytest.raises(OSError, match="it is a link, and is not followed" if "link" in kind else problem):
        open_regular(tmp_path / "f", flags)


def test_a_file_is_read_up_to_a_bound_and_a_link_where_the_user_named_it(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"tea")
    (tmp_path / "link").symlink_to("f")
    assert read_regular(tmp_path / "f", 3) == read_regular(tmp_path / "link", 3, follows_links=True) == b"tea"
    with pytest.raises(OSError, match="it has more than 2 bytes"):
        read_regular(tmp_path / "f", 2)
    with pytest.raises(OSError, match="it is a link, and is not followed"):
        read_regular(tmp_path / "link", 3)


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o700, 0o664, 0o606, 0o777])
def test_who_may_change_a_file_is_told_from_its_owner_and_mode(mode: int) -> None:
    def of(uid: int) -> os.stat_result:
        return SimpleNamespace(st_uid=uid, st_mode=0o100000 | mode)  # type: ignore[return-value]

    assert others_may_write(of(0)) == (mode in (0o664, 0o606, 0o777))
    assert not is_of_another_user(of(0))
    assert not is_of_another_user(of(os.geteuid()))
    assert is_of_another_user(of(os.geteuid() + 1))


def test_what_is_made_anew_is_written_through_no_link(tmp_path: Path) -> None:
    mine, made = tmp_path / "mine", tmp_path / "made"
    mine.write_bytes(b"mine")
    for name in ("made", "made.new"):
        (tmp_path / name).symlink_to(mine)
    replace_small(made, b"tea", 0o640)
    assert (made.read_bytes(), made.is_symlink(), mine.read_bytes()) == (b"tea", False, b"mine")
    made.unlink()
    os.mkfifo(made)
    os.close(create_anew(made))
    assert made.stat().st_mode & 0o777 == 0o600
