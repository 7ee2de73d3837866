"""An error that leaves the client shows the application's frames, and not the client's.

::

    Traceback (most recent call last):
      File "orders.py", line 12, in place
        orders.put(order)
    cortado.errors.InvalidDocument: total: must be a Decimal (got 12.5)

Each class that applications use is a :func:`public_face`: an error that leaves one of its methods loses the frames of
Cortado, and of libraries below it, and so do the errors that it was caused by. :data:`OURS` does the same around the
generators that methods return. Frames of the application that the client called stay: ``client.run(fn)``. Python adds
the entry of a frame when an error comes to it, and none when the error is raised again; so its own entry goes, too.

``CORTADO_DEBUG`` set to anything shows all frames. Those of :class:`~cortado.errors.Internal`, a defect, always show.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import aclosing
from functools import wraps
from types import FunctionType, TracebackType
from typing import Any, Final, TypeVar

from cortado.errors import CortadoError, Internal

C = TypeVar("C")

SHOWN_BY: Final = "CORTADO_DEBUG"

_OURS: Final = "cortado"
_BELOW: Final = sys.stdlib_module_names
ENTRIES: Final = frozenset(("__init__", "__enter__", "__exit__", "__aenter__", "__aexit__", "__next__", "__anext__"))


class _Ours:
    """A block that hides the client's frames in errors that leave it. Calls do without: it costs a microsecond."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if isinstance(error, CortadoError):
            _hide_ours(error)


OURS: Final = _Ours()


def public_face(face: type[C]) -> type[C]:
    """Hide the client's frames in errors from the methods of ``face``."""
    for name, member in list(vars(face).items()):
        if name.startswith("_") and name not in ENTRIES:
            continue
        if isinstance(member, FunctionType):
            setattr(face, name, _hiding(member))
        elif isinstance(member, property) and member.fget is not None:
            setattr(face, name, property(_hiding(member.fget), doc=member.__doc__))
    return face


def _hiding(method: Callable[..., Any]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(method):

        @wraps(method)
        async def awaited(*args: Any, **named: Any) -> Any:
            try:
                return await method(*args, **named)
            except CortadoError as error:
                _hide_ours(error)
                raise

        return awaited

    if inspect.isasyncgenfunction(method):

        @wraps(method)
        async def streamed(*args: Any, **named: Any) -> Any:
            with OURS:
                async with aclosing(method(*args, **named)) as stream:
                    async for item in stream:
                        yield item

        return streamed

    @wraps(method)
    def called(*args: Any, **named: Any) -> Any:
        try:
            return method(*args, **named)
        except CortadoError as error:
            _hide_ours(error)
            raise

    return called


def _hide_ours(error: CortadoError) -> None:
    if not isinstance(error, Internal) and not os.environ.get(SHOWN_BY):
        for each in _chain(error):
            each.__traceback__ = _without_ours(each.__traceback__)


def _chain(error: BaseException) -> list[BaseException]:
    """Return the error and those that Python prints with it: its causes, or the errors whose handling it cut short."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ if each.__cause__ is not None or each.__suppress_context__ else each.__context__
    return found


def _without_ours(traceback: TracebackType | None) -> TracebackType | None:
    kept: TracebackType | None = None
    for each in reversed(list(_of_application(traceback))):
        kept = TracebackType(kept, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return kept


def _of_application(traceback: TracebackType | None) -> Iterator[TracebackType]:
    """Yield the entries that are neither Cortado's nor of a library that Cortado called."""
    is_below = False
    while traceback is not None:
        package = str(traceback.tb_frame.f_globals.get("__name__", "")).partition(".")[0]
        is_below = package == _OURS or (is_below and package in _BELOW)
        if not is_below:
            yield traceback
        traceback = traceback.tb_next
