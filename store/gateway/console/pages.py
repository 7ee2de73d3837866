"""Pages made of templates, with the headers that keep a browser from doing anything else.

The policy lets a page load this gateway's files, and nothing from any other host; it runs no script that stands in
the page, so that text which got past the escaping would still be text.
"""

from __future__ import annotations

from collections.abc import Awaitable
from importlib.resources import files
from typing import Any, Final, TypeVar

from jinja2 import Environment, FunctionLoader, StrictUndefined
from starlette.responses import Response

from cortado.errors import CortadoError, Unauthenticated
from cortado.store.gateway.console import texts
from cortado.store.gateway.console.acts.act import removes
from cortado.store.gateway.console.visitor import NOBODY, Visitor
from cortado.store.gateway.problems import Refused, challenge, problem_response

T = TypeVar("T")

HTML: Final = "text/html"
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    # Other sites are not told of anything. This one is: else a form would come from nowhere.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
_FILTERS: Final = (
    texts.plain, texts.cell, texts.pretty, texts.count, texts.size, texts.rows, texts.span, texts.seconds, texts.rate,
    texts.moment, texts.wall,
)  # fmt: skip


def _source(name: str) -> str:
    return files("cortado.store.gateway.console").joinpath("templates", name).read_text(encoding="utf-8")


def _environment() -> Environment:
    made = Environment(
        loader=FunctionLoader(_source), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    # Escaping is done at output, also of a default and of a list's values.
    made.filters.update({each.__name__: each for each in _FILTERS})
    made.globals["removes"] = removes
    made.tests["problem"] = lambda found: isinstance(found, CortadoError)
    return made


_ENVIRONMENT: Final = _environment()


def page(visitor: Visitor, name: str, status: int = 200, **found: Any) -> Response:
    """Return the template with the values ``found``, for this visitor. No cache keeps it: the state behind it may
    change a moment later."""
    may = {"operates": visitor.operates, "administers": visitor.administers, "defines": visitor.defines}
    text = _ENVIRONMENT.get_template(name).render(visitor=visitor, **may, **found)
    return Response(text.encode("utf-8", "replace"), status, {**HEADERS, "Cache-Control": "no-store"}, HTML)


def failed(error: CortadoError | Refused, visitor: Visitor = NOBODY) -> Response:
    """Return a page that says the error."""
    told = problem_response(error)
    cause = error.error if isinstance(error, Refused) else error
    answer = page(visitor, "problem.html", told.status_code, area="", error=cause)
    answer.headers.update({name: told.headers[name] for name in ("allow", "retry-after") if name in told.headers})
    challenge(answer, cause)
    return answer


async def tried(work: Awaitable[T]) -> T | CortadoError:
    """Return the result or the error: the rest of a page is shown beside it. Raises Unauthenticated: its visitor is
    asked to sign in."""
    try:
        return await work
    except Unauthenticated:
        raise
    except CortadoError as error:
        return error
