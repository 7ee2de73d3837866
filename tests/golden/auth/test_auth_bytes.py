"""The bytes of principals and grants on disk, and the text of tokens. A change here is a change of format: see
docs/formats/auth.md."""

from __future__ import annotations

from cortado.store.auth import stored
from cortado.store.auth.roles import Grant, Resource, Role
from cortado.store.auth.stored import Kind, Principal, StoredToken, Switch
from cortado.store.auth.tokens import make_token

TOKEN = StoredToken("00112233aabbccdd", bytes(range(32)), 1_000, 2_000)
PRINCIPAL = Principal("app", Kind.TOKEN, (TOKEN,), (Grant(Role.READER, Resource("table:air.flights")),))


def test_keys() -> None:
    assert stored.AUTH_KEY == b"m\x30auth\x00\x01\x01"
    assert stored.principal_key("app") == b"m\x30auth\x00\x01\x30principal\x00\x01\x30app\x00\x01\x01"
    assert stored.token_key("00ff") == b"m\x30auth\x00\x01\x30token\x00\x01\x3000ff\x00\x01\x01"


def test_values() -> None:
    assert stored.encode_switch(Switch()) == b""
    assert stored.encode_switch(Switch(enabled=True, principals=3, admins=1)) == b"\x08\x01\x10\x03\x18\x01"
    assert stored.encode_owner("app") == b"\x0a\x03app"
    token = b"\x0a\x1000112233aabbccdd\x12\x20" + bytes(range(32)) + b"\x18\xe8\x07\x20\xd0\x0f"
    grant = b"\x0a\x06reader\x12\x11table:air.flights"
    assert stored.encode_principal(PRINCIPAL) == (
        b"\x0a\x03app\x12\x05token" + b"\x1a" + bytes([len(token)]) + token + b"\x22" + bytes([len(grant)]) + grant
    )


def test_what_was_stored_is_read_back() -> None:
    assert stored.decode_principal(stored.encode_principal(PRINCIPAL)) == PRINCIPAL
    switch = Switch(enabled=True, principals=3, admins=1)
    assert stored.decode_switch(stored.encode_switch(switch)) == switch
    assert stored.decode_owner(stored.encode_owner("app")) == "app"


def test_a_token_and_its_digest() -> None:
    token = make_token(lambda count: bytes(range(count)))
    assert token.text == "ctd_0001020304050607_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
    assert token.digest.hex() == "24d018ebd49ee2741a167b5f6740351763b40d884be1052fc0bb1bc6ef8d694b"
    assert token.text not in repr(token)
