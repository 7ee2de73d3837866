"""``/ui/acts/{act}``: the page of an act, and its form when it comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

from starlette.responses import Response

from cortado.errors import CortadoError, InvalidArgument, NotFound, OutcomeUnknown
from cortado.store.gateway.calls import Call, Parameter
from cortado.store.gateway.console.acts.act import Act, Done, Sight, Texts
from cortado.store.gateway.console.acts.table import ACTS
from cortado.store.gateway.console.forms import FORM, check_own, digest, was_sent
from cortado.store.gateway.console.pages import page
from cortado.store.gateway.console.visitor import Visitor
from cortado.store.gateway.problems import Refused, status_of
from cortado.store.keys.names import shown

TYPED: Final = "typed"
"""The field for the typed name of the target."""
TARGETS: Final = tuple(
    Parameter(name, "The target, if the act has one of this kind.")
    for name in sorted({name for act in ACTS.values() for name in act.target})
)
_NO_ACTS: Final = (
    "must be allowed: while roles are off the console changes nothing, unless its gateway was started with "
    "--console-acts-without-roles"
)


async def show(call: Call, visitor: Visitor) -> Response:
    """Return the page of an act."""
    act, target = _asked(call, visitor)
    sight = await act.look(call.client, target)
    return await _page(call, visitor, act, target, sight, {**{each.name: each.value for each in act.inputs}})


async def act(call: Call, visitor: Visitor) -> Response:
    """Return the result of a form. If the answer is the form's page again, it says why nothing was done."""
    check_own(call.headers)
    wanted, target = _asked(call, visitor)
    fields = await call.form()
    text = fields.get(FORM, "")
    # Before anything is told of the other fields: they may be those of another act.
    form = call.forms.read(visitor.secret, wanted.name, target, text)
    given = _given(wanted, fields)
    typed = given.pop(TYPED)

    async def work() -> Done:
        _check_typed(wanted, target, typed)
        sight = await wanted.look(call.client, target)
        if digest(sight.same) != form.seen:
            raise _changed(wanted)
        return await wanted.do(call.client.with_request_id(form.request_id), target, given)

    try:
        done = await call.forms.once(text, {**given, TYPED: typed}, work)
    except OutcomeUnknown as unknown:
        where = wanted.back(target)
        return page(visitor, "unknown.html", status_of(unknown), area="", act=wanted, error=unknown, where=where)
    except (CortadoError, Refused) as error:
        return await _again(call, visitor, wanted, target, given, _told(error))
    return page(visitor, "done.html", area="", act=wanted, done=done)


async def form_of(call: Call, visitor: Visitor, name: str, target: Texts) -> str:
    """Return the form of an act that stands on another page; empty for a visitor without acts."""
    if not visitor.may_act:
        return ""
    return await _written(call, visitor, name, target, await ACTS[name].look(call.client, target))


async def _written(call: Call, visitor: Visitor, name: str, target: Texts, sight: Sight) -> str:
    return call.forms.written(visitor.secret, name, target, sight.same, await call.client.new_request_id())


def _asked(call: Call, visitor: Visitor) -> tuple[Act, Texts]:
    """Return the act and its target. Raises NotFound, Refused, InvalidArgument."""
    name = call.name("act")
    found = ACTS.get(name)
    if found is None:
        raise NotFound("act", name)
    if visitor.problem is not None:
        raise visitor.problem
    if not visitor.may_act:
        raise Refused(403, InvalidArgument("act", _NO_ACTS, name))
    target: dict[str, str] = {}
    for each in TARGETS:
        value = call.text(each.name)
        if (value is not None) is not (each.name in found.target):
            must = "must be given" if value is None else "is no parameter of this act"
            raise InvalidArgument(
                each.name, f"{must}: {name} is on {', '.join(found.target) or 'nothing'}", value or ""
            )
        if value is not None:
            target[each.name] = value
    return found, target


def _given(act: Act, fields: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of the form, those of boxes that are not ticked too. Raises InvalidArgument."""
    known = {each.name: each for each in act.inputs}
    extra = fields.keys() - known.keys() - {FORM, TYPED if act.typed else FORM}
    if extra:
        raise InvalidArgument("body", "must have no other fields than its form has", shown(", ".join(sorted(extra))))
    given = {name: fields.get(name, "") for name in known}
    for name, each in known.items():
        if each.required and not given[name].strip():
            raise InvalidArgument(name, "must be filled in")
        if each.kind == "choice" and given[name] not in each.choices:
            raise InvalidArgument(name, f"must be one of {', '.join(filter(None, each.choices))}", shown(given[name]))
    return {**given, TYPED: fields.get(TYPED, "")}


def _check_typed(act: Act, target: Texts, typed: str) -> None:
    if act.typed and typed.strip() != target[act.typed]:
        problem = f"must be the name of the target, {target[act.typed]}"
        raise InvalidArgument(TYPED, problem, shown(typed))


def _changed(act: Act) -> Refused:
    problem = (
        "the page showed an older state, so this form did nothing: another caller has changed the target meanwhile, "
        "or the form was sent before. Look at it again"
    )
    return Refused(409, InvalidArgument(act.name, problem))


def _told(error: CortadoError | Refused) -> CortadoError | Refused:
    """Return the error in a form's words: the visitor has seen no request id."""
    if not isinstance(error, InvalidArgument) or error.field != "request_id":
        return error
    return was_sent("with other fields, or at another gateway, which has its token")


async def _again(
    call: Call, visitor: Visitor, act: Act, target: Texts, given: Texts, error: CortadoError | Refused
) -> Response:
    """Return the page of the act with the given fields, the present state, and why nothing was done."""
    cause = error.error if isinstance(error, Refused) else error
    status = error.status if isinstance(error, Refused) else status_of(error)
    try:
        sight = await act.look(call.client, target)
    except CortadoError:
        # The target is gone, or the cluster does not answer: the first error says more.
        raise error from None
    return await _page(call, visitor, act, target, sight, given, cause, status)


async def _page(
    call: Call, visitor: Visitor, act: Act, target: Texts, sight: Sight, given: Texts,
    error: CortadoError | None = None, status: int = 200,
) -> Response:  # fmt: skip
    values = given if error is not None else {**given, **(sight.value or {})}
    return page(
        visitor,
        "act.html",
        status,
        area="",
        act=act,
        target=target,
        named=target[act.typed] if act.typed else "",
        here=f"/ui/acts/{act.name}" + (f"?{urlencode(target)}" if target else ""),
        back=act.back(target),
        facts=sight.facts,
        values=values,
        form=await _written(call, visitor, act.name, target, sight),
        error=error,
    )
