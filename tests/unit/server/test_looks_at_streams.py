"""An open stream is looked at again when something may have changed for it, and not otherwise."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from cortado.errors import PermissionDenied
from cortado.store.auth.caller import Caller
from cortado.store.auth.current import Credential
from cortado.store.server.authority import Authority, OpenStream

METHOD = "cortado.v1.Watch/KeyValue"


class Decided:
    """An authority that counts how often it decides."""

    def __init__(self, *, is_enabled: bool) -> None:
        self.roles = SimpleNamespace(is_enabled=is_enabled)
        self.meters = SimpleNamespace(by_target={})
        self.is_remembered = True
        self.is_allowed = True
        self.checks = 0

    def remembers(self, _: Credential) -> bool:
        return self.is_remembered

    def check(self, *_: Any) -> None:
        self.checks += 1
        if not self.is_allowed:
            raise PermissionDenied("p", "read", "table db.t")


def stream_of(authority: Decided) -> OpenStream:
    stream = OpenStream(METHOD, cast(Authority, authority))
    stream.callers.append(Caller(Credential(token="t"), ()))
    return stream


def test_while_nothing_changes_it_is_decided_once() -> None:
    for is_enabled in (False, True):
        authority = Decided(is_enabled=is_enabled)
        stream = stream_of(authority)
        for _ in range(10):
            stream.look()
        assert authority.checks == 1


def test_it_is_decided_again_by_other_roles_and_by_a_token_that_ends() -> None:
    authority = Decided(is_enabled=True)
    stream = stream_of(authority)
    stream.look()
    authority.roles = SimpleNamespace(is_enabled=True)
    stream.look()
    authority.is_remembered = False
    stream.look()
    stream.look()
    assert authority.checks == 4


def test_what_depends_on_what_is_stored_is_decided_each_time() -> None:
    authority = Decided(is_enabled=True)
    stream = stream_of(authority)
    stream.callers[0].stored = lambda *_: ()
    for _ in range(3):
        stream.look()
    assert authority.checks == 3
