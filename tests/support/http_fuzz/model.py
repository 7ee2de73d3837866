"""Documents and pairs that no other caller writes, beside a dictionary: each answer is known from those before it.

One caller makes one call after the other, so there is nothing to guess: a call is acknowledged, and the dictionary has
it, or refused, and it has not.
"""

from __future__ import annotations

import json
from random import Random
from typing import Any, Final
from urllib.parse import quote

from support.http_fuzz.wire import Answer, Sent, Wire

KEYS: Final = ("a", "b/c", "é", "e\u0301", "%2F", "..", "a:watch", "\\", "x" * 200, " ", "a;b=c", "\x00", "'")
JSON: Final = ("Content-Type", "application/json")
BYTES: Final = ("Content-Type", "application/octet-stream")
LINES: Final = ("Accept", "application/x-ndjson")


class Model:
    """``stored`` has the acknowledged value and etag of each of two resources."""

    def __init__(self, wire: Wire, chosen: Random) -> None:
        self._wire = wire
        self._chosen = chosen
        self._count = 0
        self.stored: dict[str, dict[str, tuple[str, Any]]] = {"/v1/kv/modelled": {}, "/v1/db/modelled/items": {}}
        self._is_table = {"/v1/kv/modelled": False, "/v1/db/modelled/items": True}

    def step(self) -> None:
        """Make one call. Fails if its answer differs from the dictionary's."""
        chosen = self._chosen
        self._count += 1
        root, key = chosen.choice([*self.stored]), chosen.choice(KEYS)
        match chosen.randrange(10):
            case 0 | 1 | 2 | 3:
                self._put(root, key)
            case 4:
                self._delete(root, key)
            case 5:
                self._patch(key)
            case 6:
                self._batch()
            case 7 | 8:
                self._get(root, key)
            case _:
                self.check_all(root)

    def _call(self, method: str, target: str, *headers: tuple[str, str], body: bytes = b"") -> Answer:
        answer = self._wire.call(Sent(method, target, headers, body))
        assert answer.status < 500, (method, target, answer)
        return answer

    def _url(self, root: str, key: str) -> str:
        return f"{root}/{quote(key, safe='').replace('.', '%2E')}"

    def _new(self, root: str, key: str) -> tuple[Any, bytes]:
        """Return a value, and the body that stores it."""
        if not self._is_table[root]:
            value = b"%d" % self._count + self._chosen.randbytes(self._chosen.choice((0, 3, 5_000)))
            return value, value
        document = {"id": key, "left": self._chosen.choice((self._count, 2**53 + 1, -(2**63))), "name": "n"}
        return document, json.dumps(document).encode()

    def _condition(self, root: str, key: str) -> tuple[list[tuple[str, str]], bool]:
        """Return headers, and whether a put with them is done."""
        there = self.stored[root].get(key)
        match self._chosen.randrange(5):
            case 0:
                return [("If-None-Match", "*")], there is None
            case 1:
                return [("If-Match", "*")], there is not None
            case 2:
                etag = there[0] if there else "0.1.0"
                return [("If-Match", f'"{etag}"')], there is not None
            case 3:
                return [("If-Match", '"0.1.0"')], False
            case _:
                return [], True

    def _put(self, root: str, key: str) -> None:
        (conditions, is_done), (value, body) = self._condition(root, key), self._new(root, key)
        once = [("Idempotency-Key", f"put-{self._count}")] if self._chosen.random() < 0.3 else []
        kind = JSON if self._is_table[root] else BYTES
        answers = [
            self._call("PUT", self._url(root, key), kind, *conditions, *once, body=body) for _ in range(1 + len(once))
        ]
        for answer in answers:
            wanted = (201 if ("If-None-Match", "*") in conditions else 200) if is_done else 412
            # An insert or a replacement of a row that is, or is not there, has an error of its own.
            assert answer.status == wanted or (not is_done and answer.status in (404, 409)), (conditions, answer)
        if is_done:
            [etag] = {answer.json()["etag"] for answer in answers}
            assert answers[0].headers["etag"] == f'"{etag}"'
            self.stored[root][key] = (etag, value)

    def _delete(self, root: str, key: str) -> None:
        answer = self._call("DELETE", self._url(root, key))
        assert answer.json() == {"existed": self.stored[root].pop(key, None) is not None}

    def _patch(self, key: str) -> None:
        root = "/v1/db/modelled/items"
        body = json.dumps({"name": f"patched {self._count}"}).encode()
        answer = self._call("PATCH", self._url(root, key), JSON, body=body)
        there = self.stored[root].get(key)
        if there is None:
            assert answer.status == 404, answer
            return
        document = {**there[1], "name": f"patched {self._count}"}
        assert (answer.status, answer.json()) == (200, document)
        self.stored[root][key] = (answer.headers["etag"].strip('"'), document)

    def _batch(self) -> None:
        """Put into both, all or none: a check that fails stands at the end."""
        tables, pairs = "/v1/db/modelled/items", "/v1/kv/modelled"
        key, fails = self._chosen.choice(KEYS), self._chosen.random() < 0.4
        document, _ = self._new(tables, key)
        operations: list[Any] = [
            {"put": {"table": "items", "document": document}},
            {"put": {"namespace": "modelled", "key": "b/c", "value": str(self._count)}},
        ]
        if fails:
            operations.append({"require": {"namespace": "modelled", "key": "b/c", "if_absent": True}})
        answer = self._call("POST", "/v1/db/modelled:batch", JSON, body=json.dumps({"operations": operations}).encode())
        assert answer.status == (412 if fails else 200), answer
        if not fails:
            etag = answer.json()["etag"]
            self.stored[tables][key] = (etag, document)
            self.stored[pairs]["b/c"] = (etag, str(self._count).encode())

    def _get(self, root: str, key: str) -> None:
        there = self.stored[root].get(key)
        answer = self._call("GET", self._url(root, key))
        if there is None:
            assert answer.status == 404, answer
            return
        etag, value = there
        assert (answer.status, answer.headers["etag"]) == (200, f'"{etag}"'), answer
        assert (answer.json() if self._is_table[root] else answer.body) == value
        again = self._call("GET", self._url(root, key), ("If-None-Match", f'"0.1.0", W/"{etag}"'))
        assert again.status == 304
        head = self._call("HEAD", self._url(root, key))
        assert (head.status, head.headers["content-length"]) == (200, str(len(answer.body)))

    def check_all(self, root: str) -> None:
        """Check all stored resources, as lines or in pages of any size."""
        if self._chosen.random() < 0.5:
            found = [json.loads(line) for line in self._call("GET", root, LINES).body.splitlines()]
        else:
            found, page = [], ""
            count = self._chosen.choice((1, 3, 100))
            while page is not None:
                told = self._call("GET", f"{root}?limit={count}" + (f"&page={page}" if page else "")).json()
                found += told["elements"]
                page = told["next"]
        stored = self.stored[root]
        ordered = sorted(stored, key=lambda key: key.encode())
        assert [each["etag"] for each in found] == [stored[key][0] for key in ordered]
        if self._is_table[root]:
            assert [each["value"] for each in found] == [stored[key][1] for key in ordered]
