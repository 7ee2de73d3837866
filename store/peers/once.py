"""Logs a message once per change, in bounded memory, so that strangers cannot fill the log."""

from __future__ import annotations

from typing import Final

TOPICS_MAX: Final = 256
WINDOW_MS: Final = 60_000.0


class OncePerChange:
    """:meth:`is_new` is True if the topic's last text was another. At most ``TOPICS_MAX`` unknown topics a minute are
    new."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}
        self._strangers: dict[str, str] = {}
        self._window_ends_ms = 0.0

    def is_new(self, topic: str, text: str, now_ms: float, *, known: bool) -> bool:
        """``known``: the topic is one of a few, a member; not a name that a caller can make up."""
        if known:
            is_new = self._last.get(topic) != text
            self._last[topic] = text
            return is_new
        if now_ms >= self._window_ends_ms:
            self._strangers.clear()
            self._window_ends_ms = now_ms + WINDOW_MS
        if self._strangers.get(topic) == text or len(self._strangers) >= TOPICS_MAX:
            return False
        self._strangers[topic] = text
        return True

    def forget(self, topic: str) -> None:
        """Settle the topic's matter: the same text would be news again."""
        self._last.pop(topic, None)
