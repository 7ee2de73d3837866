"""The console's acts: each takes effect once, and never for a visitor that another site led there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html import unescape
from types import SimpleNamespace
from typing import Any, Final, cast

import pytest

from cortado.errors import OutcomeUnknown, Unavailable
from cortado.proto.v1 import tables_pb2
from cortado.store.client import AsyncClient
from cortado.store.client.auth import AsyncAuth, WhoAmI
from cortado.store.client.tables import CheckProblem, CheckReport
from cortado.store.clock.timestamp import ZERO
from cortado.store.gateway.calls import Call
from cortado.store.gateway.console.acts.table import ACTS
from cortado.store.gateway.console.forms import AGE_MS_MAX, Form, Forms, digest
from cortado.store.gateway.console.parts import SHOWN_MAX, Part, first_namespaces, first_tables, part_of
from cortado.store.gateway.problems import Refused
from support.commands import found
from support.console_forms import OWN, act, act_refused, form_of, get, path_of, send, text_of
from support.gateways import Gateway, gateway_before
from support.memory_engine import MemoryEngine
from support.served_node import served_node

ITEM: Final = {"type": "record", "name": "Item", "fields": [{"name": "id", "type": "string"}]}
NEXT: Final = '{"type": "record", "name": "Item", "fields": [{"name": "id", "type": "string"}, %s]}'
ID: Final = bytes(range(20))
MARKUP: Final = "<script>alert(1)</script>\u202e"


@pytest.fixture(scope="module")
def console() -> Iterator[Gateway]:
    with served_node(MemoryEngine()) as node, gateway_before(node.endpoint, acts_without_roles=True) as made:
        made.run(made.client.create_database("acts"))
        yield made


def make_table(made: Gateway, name: str) -> str:
    async def make() -> None:
        await made.client.schemas.register(f"acts.{name}", ITEM)
        await made.client.create_table(f"acts.{name}", key=["id"])
        await made.client.table(f"acts.{name}").put({"id": "tea"})

    made.run(make())
    return f"acts.{name}"


def is_there(made: Gateway, table: str) -> bool:
    return table in {each.full_name for each in made.run(made.client.tables("acts"))}


# --- each act -------------------------------------------------------------------------------------------------------


def test_a_database_and_a_table_are_made_altered_renamed_dropped_and_brought_back(console: Gateway) -> None:
    assert "Database made was created" in act(console, "create-database", {"database": "made"})
    console.run(console.client.schemas.register("made.items", ITEM))
    given = {"database": "made", "name": "items", "key": "id", "subject": "", "retention": "7d", "ttl": ""}
    assert "Table made.items was created" in act(console, "create-table", given)
    assert console.run(console.client.describe("made.items")).retention_ms == 7 * 86_400_000
    assert 'value="7d"' in get(console, path_of("alter-table", table="made.items")).text
    act(console, "alter-table", {"retention": "all", "ttl": "90s"}, table="made.items")
    found = console.run(console.client.describe("made.items"))
    assert (found.retention_ms, found.ttl_ms) == (-1, 90_000)
    assert "is called made.things" in act(console, "rename-table", {"name": "things"}, table="made.items")
    given = {"name": "by_id", "parts": "id desc", "unique": "on"}
    assert "Index by_id of made.things is" in act(console, "create-index", given, table="made.things")
    [index] = console.run(console.client.indexes("made.things"))
    assert (index.unique, index.parts[0].descending) == (True, True)
    act(console, "drop-index", {"typed": "by_id"}, table="made.things", index="by_id")
    assert "is empty" in act(console, "truncate-table", {"typed": "made.things"}, table="made.things")
    assert "1 tables" in act(console, "drop-database", {"typed": "made", "cascade": "on"}, database="made")
    [record] = [each for each in console.run(console.client.dropped()) if each.kind == "database"]
    assert "with 1 tables" in act(console, "undrop", {"name": "made"}, number=str(record.number))
    act(console, "drop-table", {"typed": "made.things"}, table="made.things")
    dropped = console.run(console.client.dropped())
    number = max(each.number for each in dropped if each.kind == "table")
    assert "Table made.again is back" in act(console, "undrop", {"name": "again"}, number=str(number))


def test_a_namespace_is_dropped_and_brought_back(console: Gateway) -> None:
    console.run(console.client.kv("carts").put(b"a", b"1"))
    assert "Namespace carts was dropped" in act(console, "drop-namespace", {"typed": "carts"}, namespace="carts")
    assert get(console, path_of("drop-namespace", namespace="carts")).status_code == 404
    [record] = [each for each in console.run(console.client.dropped()) if each.name == "carts"]
    assert "is back" in act(console, "undrop", {"name": ""}, number=str(record.number))
    assert console.run(console.client.kv("carts").get(b"a")).value == b"1"


def test_a_schema_is_registered_behind_its_verdict(console: Gateway) -> None:
    answer = send(console, "/ui/schemas/acts.new", {"schema": NEXT % '{"name": "a", "type": "int", "default": 0}'})
    assert "It would be the first version" in text_of(answer)
    given = {"form": form_of(answer), "schema": NEXT % '{"name": "a", "type": "int", "default": 0}'}
    answer = send(console, path_of("register-schema", subject="acts.new"), given)
    assert "It is version 1 of acts.new" in text_of(answer)
    assert "FULL" in act(console, "set-compatibility", {"mode": "FULL"}, subject="acts.new")
    wrong = act_refused(
        console, "register-schema", {"schema": NEXT % '{"name": "b", "type": "int"}'}, subject="acts.new"
    )
    assert wrong.status_code == 409
    assert "Nothing was done" in wrong.text
    assert len(console.run(console.client.schemas.versions("acts.new"))) == 1


def test_a_member_is_announced_and_removed(console: Gateway) -> None:
    given = {"node": "n9", "address": "127.0.0.1:9"}
    assert "n9 is announced" in act(console, "add-member", given)
    assert "n9 is no member any more" in act(console, "remove-member", {"typed": "n9"}, node="n9")
    assert get(console, path_of("remove-member", node="n9")).status_code == 404


def test_a_table_is_checked_and_its_indexes_are_put_right(console: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_table(console, "checked")
    told = "Table acts.checked is sound: 1 rows and 0 entries of indexes were read"
    assert told in act(console, "check-table", {}, table=table)
    assert told in act(console, "check-table", {"repair": "on"}, table=table)

    async def unsound(_: AsyncClient, name: str, *, repair: bool) -> CheckReport:
        problems = (CheckProblem("by_id", "missing", "tea", "no entry"), CheckProblem("", "row", "x", MARKUP))
        return CheckReport(2, 1, problems, ZERO, int(repair), 1)

    monkeypatch.setattr(AsyncClient, "verify_indexes", unsound)
    text = act(console, "check-table", {"repair": "on"}, table=table)
    assert (
        "has 2 problems; 1 entries were put right, 1 could not be. The first is missing of index by_id at key" in text
    )

    async def endless(_: AsyncClient, name: str, *, repair: bool) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(AsyncClient, "verify_indexes", endless)
    monkeypatch.setattr("cortado.store.gateway.console.acts.act.WAITS_S", 0.01)
    late = act_refused(console, "check-table", {}, table=table)
    assert (late.status_code, "cortado table verify-indexes acts.checked" in text_of(late)) == (504, True)


def test_operators_see_the_commands_for_what_is_no_act_and_each_exists(console: Gateway) -> None:
    page = get(console, "/ui").text
    section = page[page.index('id="commands"') :]
    commands = [unescape(each) for each in re.findall(r"<code>(cortado [^<]+)</code>", section)]
    assert {each.split()[1] for each in commands} == {"backup", "scrub", "damage", "recover"}
    for each in commands:
        command, words = found(each.split()[1:], each)
        command.make_context(each, words)
    with gateway_before(console.client.endpoint) as quiet:
        assert 'id="commands"' not in get(quiet, "/ui").text


def test_a_quota_is_set_and_taken_away(console: Gateway) -> None:
    given = {"target": "database:acts", "calls": "500", "rate": "20MiB", "stored": ""}
    assert "database:acts has this quota" in act(console, "set-quota", given)
    found = console.run(console.client.admin.quotas.get("database:acts"))
    assert (found.calls_per_second, found.bytes_per_second, found.stored_bytes) == (500, 20 << 20, None)
    assert "database:acts 500 20.0 MiB" in text_of(get(console, "/ui/roles"))
    wrong = act_refused(console, "set-quota", {**given, "rate": "much"})
    assert "rate: must be a number of bytes" in text_of(wrong)
    assert "has no quota any more" in act(console, "remove-quota", target="database:acts")
    assert get(console, path_of("remove-quota", target="database:acts")).status_code == 404


# --- callers and origins --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(ACTS))
def test_no_act_is_done_by_a_form_that_was_not_given_out(console: Gateway, name: str) -> None:
    target = dict.fromkeys(ACTS[name].target, "x")
    given = {each.name: (each.choices or ("x",))[-1] for each in ACTS[name].inputs}
    before = console.run(console.client.now())
    assert console.run(console.http.get(path_of(name, **target), params={"form": "x"})).status_code == 400
    for form in ("", "x", f"{'0' * 40}.{'0' * 13}.{'0' * 32}.{'0' * 64}"):
        answer = send(console, path_of(name, **target), {"form": form, **given})
        assert (answer.status_code, "form: " in answer.text) == (403, True), answer.text
    assert console.run(console.client.now()) == before


def test_a_form_of_another_act_is_refused_before_its_fields_are_read(console: Gateway) -> None:
    """Nothing is told of them: the visitor did not ask for this act."""
    form = form_of(get(console, path_of("create-database")))
    for fields in ({"database": "x"}, {"colour": "red"}, {}):
        answer = send(console, path_of("create-table"), {"form": form, **fields})
        assert (answer.status_code, "was made for another visitor" in text_of(answer)) == (403, True)


@pytest.mark.parametrize(
    ("headers", "named"),
    [
        ({"Origin": "http://example.org"}, "Origin"),
        ({"Origin": "null"}, "Origin"),
        ({"Origin": "http://localhost:1"}, "Origin"),
        ({"Origin": "http://127.0.0.1:7629"}, "Origin"),
        ({"Sec-Fetch-Site": "cross-site"}, "Sec-Fetch-Site"),
        ({"Sec-Fetch-Site": "same-site"}, "Sec-Fetch-Site"),
        ({"Sec-Fetch-Site": "none"}, "Sec-Fetch-Site"),
    ],
)
def test_a_form_of_another_page_is_refused(console: Gateway, headers: dict[str, str], named: str) -> None:
    table = make_table(console, "elsewhere") if not is_there(console, "acts.elsewhere") else "acts.elsewhere"
    path = path_of("drop-table", table=table)
    answer = send(console, path, {"form": form_of(get(console, path)), "typed": table}, **headers)
    assert answer.status_code == 403
    assert named in text_of(answer)
    assert is_there(console, table)


def test_a_form_says_where_it_comes_from(console: Gateway) -> None:
    path = path_of("create-database")
    given = {"form": form_of(get(console, path)), "database": "unsaid"}
    answer = console.run(console.http.post(path, data=given))
    assert answer.status_code == 403
    assert "Origin: must be set" in text_of(answer)
    assert "unsaid" not in console.run(console.client.databases())


@pytest.mark.parametrize(("name", "other"), [("Origin", "http://example.org"), ("Sec-Fetch-Site", "cross-site")])
def test_what_is_said_twice_is_not_the_first_one(console: Gateway, name: str, other: str) -> None:
    path = path_of("create-database")
    form = form_of(get(console, path))
    said = [("Origin", OWN), ("Sec-Fetch-Site", "same-origin"), (name, other)]
    answer = console.run(console.http.post(path, data={"form": form, "database": "said-twice"}, headers=said))
    assert (answer.status_code, name in text_of(answer)) == (403, True)
    assert "said-twice" not in console.run(console.client.databases())


def test_a_form_is_for_one_act_on_one_thing(console: Gateway) -> None:
    one, other = make_table(console, "one"), make_table(console, "other")
    form = form_of(get(console, path_of("drop-table", table=one)))
    for path, typed in (
        (path_of("drop-table", table=other), other),
        (path_of("truncate-table", table=one), one),
    ):
        answer = send(console, path, {"form": form, "typed": typed})
        assert answer.status_code == 403
        assert "was made for another visitor, act, target or gateway" in text_of(answer)
    assert is_there(console, one)
    assert is_there(console, other)


def test_a_form_grows_old() -> None:
    now = [1_000.0]
    forms = Forms(now_s=lambda: now[0])
    form = forms.written(b"", "drop-table", {"table": "a.b"}, "seen", ID)
    assert forms.read(b"", "drop-table", {"table": "a.b"}, form) == Form(ID, digest("seen"))
    now[0] += AGE_MS_MAX / 1000 + 1
    with pytest.raises(Refused) as refused:
        forms.read(b"", "drop-table", {"table": "a.b"}, form)
    assert "is older than 10 minutes" in refused.value.error.message()


def test_no_two_targets_have_one_form() -> None:
    forms = Forms()
    form = forms.written(b"", "revoke-grant", {"a": "b", "c": "d"}, "", ID)
    for act_name, target in (("revoke-grant", {"a": "bcd"}), ("revoke-granta", {"b": "c", "d": ""})):
        with pytest.raises(Refused):
            forms.read(b"", act_name, target, form)


def test_while_roles_are_off_nothing_is_changed_unless_the_gateway_was_told_so(console: Gateway) -> None:
    with gateway_before(console.client.endpoint) as quiet:
        assert "/ui/acts/" not in get(quiet, "/ui/data").text + get(quiet, "/ui").text
        assert "Read-only" in get(quiet, "/ui").text
        # A form of another gateway, too.
        form = form_of(get(console, path_of("create-database")))
        for answer in (
            get(quiet, path_of("create-database")),
            send(quiet, path_of("create-database"), {"form": form, "database": "no"}),
        ):
            assert answer.status_code == 403
            assert "--console-acts-without-roles" in answer.text
    assert "no" not in console.run(console.client.databases())


def test_other_gateways_keys_are_others(console: Gateway) -> None:
    with gateway_before(console.client.endpoint, acts_without_roles=True) as other:
        form = form_of(get(other, path_of("create-database")))
        assert send(console, path_of("create-database"), {"form": form, "database": "no"}).status_code == 403


# --- forms: typed values, sent twice, changed meanwhile ------------------------------------------------------------


@pytest.mark.parametrize("typed", ["", "acts.type", "ACTS.TYPED", "acts.typed2", "acts"])
def test_the_name_must_be_typed_as_it_is(console: Gateway, typed: str) -> None:
    table = "acts.typed" if is_there(console, "acts.typed") else make_table(console, "typed")
    answer = act_refused(console, "drop-table", {"typed": typed}, table=table)
    assert answer.status_code == 400
    assert "typed: must be the name of the target, acts.typed" in text_of(answer)
    assert is_there(console, table)


def test_every_act_that_takes_something_away_asks_for_its_name() -> None:
    takes = re.compile(r"drop-|remove-member|truncate|delete-principal|cancel|end-")
    assert {each.name for each in ACTS.values() if each.typed} == {name for name in ACTS if takes.match(name)}
    assert {each.name for each in ACTS.values() if each.typed and not each.removes} == set(), "and looks so"
    assert {each.name for each in ACTS.values() if each.removes and not each.typed} == {"revoke-grant", "remove-quota"}


def test_a_form_that_is_sent_twice_has_one_effect(console: Gateway) -> None:
    path = path_of("create-database")
    given = {"form": form_of(get(console, path)), "database": "twice"}
    first, second = send(console, path, given), send(console, path, given)
    assert "Database twice was created" in text_of(first)
    assert "Database twice was created. This form was sent before" in text_of(second)
    assert "token is" not in text_of(second)
    other = send(console, path, {**given, "database": "thrice"})
    assert (other.status_code, "was sent before, with other fields" in text_of(other)) == (409, True)
    assert "thrice" not in console.run(console.client.databases())
    table = make_table(console, "twice")
    path = path_of("truncate-table", table=table)
    given = {"form": form_of(get(console, path)), "typed": table}
    assert "is empty" in text_of(send(console, path, given))
    console.run(console.client.table(table).put({"id": "new"}))
    again = send(console, path, given)
    assert "This form was sent before" in text_of(again)
    assert console.run(console.client.table(table).get("new")) is not None


def test_a_token_is_made_by_the_first_of_two_forms_alone(console: Gateway) -> None:
    path = path_of("create-principal")
    given = {"form": form_of(get(console, path)), "principal": "double", "kind": "token", "expires": ""}
    assert "ctd_" in send(console, path, given).text
    again = send(console, path, given)
    assert "Its token is in the first answer alone: where that did not come, give" in text_of(again)
    assert "ctd_" not in again.text
    [made] = console.run(console.client.admin.auth.principals())
    assert len(made.tokens) == 1


def test_a_form_for_what_has_become_another_thing_is_refused(console: Gateway) -> None:
    table = make_table(console, "stale")
    path = path_of("drop-table", table=table)
    given = {"form": form_of(get(console, path)), "typed": table}
    console.run(console.client.drop_table(table))
    gone = send(console, path, given)
    assert gone.status_code == 404
    console.run(console.client.create_table(table, key=["id"]))
    answer = send(console, path, given)
    assert answer.status_code == 409
    assert "another caller has changed the target meanwhile" in text_of(answer)
    assert is_there(console, table)
    # The answering page has a form for the present state.
    found = re.search(r'name="form" value="([^"]+)"', answer.text)
    assert found is not None
    assert "was dropped" in text_of(send(console, path, {**given, "form": found[1]}))


def test_an_outcome_that_is_unknown_is_told_as_such(console: Gateway, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lost(_: AsyncClient, name: str) -> None:
        raise OutcomeUnknown(f"the leader was lost while it made {name}{MARKUP}")

    monkeypatch.setattr(AsyncClient, "create_database", lost)
    answer = act_refused(console, "create-database", {"database": "maybe"})
    assert answer.status_code == 504
    assert "It is not known whether this was done" in text_of(answer)
    assert "Nothing was done" not in text_of(answer)
    assert "<script>alert" not in answer.text


def test_a_refusal_keeps_what_was_given(console: Gateway) -> None:
    answer = act_refused(console, "create-database", {"database": f'"{MARKUP}'})
    assert answer.status_code == 400
    assert "Nothing was done" in answer.text
    assert "&#34;&lt;script&gt;" in answer.text
    assert len(re.findall("<script", answer.text)) == 1


@pytest.mark.parametrize(
    ("name", "target", "given", "status", "says"),
    [
        ("nothing", {}, {}, 404, "act nothing"),
        ("drop-table", {}, {}, 400, "table: must be given"),
        ("drop-table", {"table": "acts.x", "node": "n"}, {}, 400, "node: is no parameter of this act"),
        ("drop-table", {"table": f"a.{MARKUP}"}, {}, 400, "table"),
        ("drop-table", {"table": "a.b\r\nSet-Cookie: a=b"}, {}, 400, "table"),
        ("undrop", {"number": "1e9"}, {}, 400, "must be a whole number"),
    ],
)
def test_what_is_no_act_is_a_page_that_says_why(
    console: Gateway, name: str, target: dict[str, str], given: dict[str, str], status: int, says: str
) -> None:
    answer = get(console, path_of(name, **target), **given)
    assert answer.status_code == status
    assert says in text_of(answer)
    assert "set-cookie" not in answer.headers
    assert len(re.findall("<script", answer.text)) == 1


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"database": ""}, "database: must be filled in"),
        ({"database": "x", "more": "y"}, "must have no other fields"),
        ({"database": "x", "typed": "y"}, "must have no other fields"),
    ],
)
def test_a_form_has_its_fields_and_no_others(console: Gateway, given: dict[str, str], says: str) -> None:
    answer = act_refused(console, "create-database", given)
    assert answer.status_code == 400
    assert says in text_of(answer)


def test_every_act_leads_back_into_the_console_and_its_page_can_be_used_by_everybody(console: Gateway) -> None:
    table = make_table(console, "pages")
    for name, target in (("create-table", {}), ("drop-table", {"table": table}), ("grant", {})):
        page = get(console, path_of(name, **target)).text
        for link in re.findall(r'(?:href|action)="([^"]*)"', page):
            assert link.startswith(("/ui", "/try", "/openapi.json", "#")), link
        labels = set(re.findall(r'<label[^>]* for="([^"]+)"', page))
        ids = set(re.findall(r'<(?:input|select|textarea)[^>]* id="([^"]+)"', page))
        assert ids <= labels
        assert set(re.findall(r'aria-describedby="([^"]+)"', page)) <= set(re.findall(r' id="([^"]+)"', page))


def test_where_nobody_leads_the_cluster_is_shown_and_nothing_is_offered(
    console: Gateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unknown(_: AsyncAuth) -> WhoAmI:
        raise Unavailable("no leader is known here")

    form = form_of(get(console, path_of("create-database")))
    monkeypatch.setattr(AsyncAuth, "who_am_i", unknown)
    page = get(console, "/ui")
    assert page.status_code == 200
    assert "Who you are cannot be said now, so nothing is offered. no leader is known here" in text_of(page)
    assert "/ui/acts/" not in page.text
    for answer in (
        get(console, path_of("create-database")),
        send(console, path_of("create-database"), {"form": form, "database": "no"}),
    ):
        assert answer.status_code == 503
        assert "no leader is known here" in text_of(answer)
    assert "no" not in console.run(console.client.databases())


# --- long lists -----------------------------------------------------------------------------------------------------


class Asked:
    """A call with these parameters."""

    def __init__(self, find: str = "", begin: int = 0) -> None:
        self._find, self._begin = find, begin

    def text(self, _: str) -> str:
        return self._find

    def number(self, *_: object) -> int:
        return self._begin


def test_no_more_namespaces_and_tables_are_asked_for_than_are_shown() -> None:
    asked = []

    class Client:
        """The client of a cluster that ends each page early."""

        async def _open_call(self, _: Any, request: Any) -> Any:
            asked.append((request.page_size, request.page_token))
            place = int(request.page_token or b"0")
            names = [f"n{place + number:04}" for number in range(min(150, request.page_size))]
            tables = [tables_pb2.Table(database="a", name=name) for name in names]
            return SimpleNamespace(namespaces=names, tables=tables, next_page_token=b"%d" % (place + len(names)))

    client = cast("AsyncClient", Client())
    assert asyncio.run(first_namespaces(client)) == [f"n{number:04}" for number in range(SHOWN_MAX + 1)]
    assert asked == [(SHOWN_MAX + 1, b""), (SHOWN_MAX - 149, b"150")]
    assert asyncio.run(first_tables(client)) == [f"a.n{number:04}" for number in range(SHOWN_MAX + 1)]


def test_a_long_list_is_shown_in_parts() -> None:
    names = [f"table-{number:05}" for number in range(10_000)]

    def part(*asked: Any) -> Part[str]:
        return part_of(cast("Call", Asked(*asked)), names, str)

    first = part()
    assert (first.items, first.count, first.before) == (names[:SHOWN_MAX], 10_000, "")
    assert first.behind == f"from={SHOWN_MAX}"
    second = part("", SHOWN_MAX)
    assert (second.items[0], second.before) == (names[SHOWN_MAX], "from=0")
    last = part("", 9_900)
    assert (last.items, last.behind) == (names[9_900:], "")
    found = part("-0123")
    assert (found.items, found.behind) == ([f"table-0123{number}" for number in range(10)], "")
    assert part("5", SHOWN_MAX).behind == f"find=5&from={2 * SHOWN_MAX}"
    assert part("none").items == []
    assert part("", 20_000) == part("", 9_800)
    assert (part("none", 200).begin, part("none", 200).before) == (0, "")
