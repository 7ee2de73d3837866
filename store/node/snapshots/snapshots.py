"""Snapshots of one group on one node: made for others, and brought here.

The node makes one, starts it before it serves, calls :meth:`Snapshots.poll` after each round, and stops it before its
threads end. What a read must know is :attr:`Snapshots.unreadable`: it is set, on the loop, before the first byte of the
old state goes, so a read that looks at it *after* its own transaction has ended never answers from half a state.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Set
from typing import NamedTuple

from cortado.store.engine.interface import Space
from cortado.store.mvcc.damage import Damage
from cortado.store.node.group_context import GroupContext
from cortado.store.node.snapshots.files import SnapshotFiles
from cortado.store.node.snapshots.ports import PausableDriver
from cortado.store.node.snapshots.receiver import ReceiverProgress, SnapshotReceiver
from cortado.store.node.snapshots.sender import SnapshotSender
from cortado.store.node.snapshots.settings import SnapshotSettings


class SnapshotCounts(NamedTuple):
    """Since the start of this process: snapshots made here, bytes of them read by others, snapshots installed here."""

    made: int
    sent_bytes: int
    installed: int


class Snapshots:
    """All calls come from the node's loop."""

    def __init__(
        self,
        group: GroupContext,
        *,
        files: SnapshotFiles,
        driver: PausableDriver,
        lost: Callable[[], Set[tuple[Space, bytes]]],
        on_damage: Callable[[Damage], None],
        on_change: Callable[[], None],
        on_failure: Callable[[BaseException], None],
        settings: SnapshotSettings | None = None,
    ) -> None:
        """``lost()`` gives the damaged items that no member has whole. ``on_damage`` hears of damage that making or
        installing a snapshot met, ``on_change``, at once, when :attr:`unreadable` changed, ``on_failure`` once, when
        the node must stop. Raises InvalidArgument of the settings."""
        settings = settings or SnapshotSettings()
        settings.check()
        self._on_change = on_change
        self._sender = SnapshotSender(group, files, settings, lost=lost, on_damage=on_damage)
        self._receiver = SnapshotReceiver(
            group,
            files,
            settings,
            driver=driver,
            on_change=self._changed,
            on_damage=on_damage,
            on_failure=on_failure,
        )

    # --- life --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Before the node serves. Deletes leftovers; where an installation was cut off, the driver is paused, and it
        begins again. Raises DataLoss where a newer version left one."""
        await self._receiver.start()

    def poll(self) -> None:
        """After each round: do what the log asks for. Cheap where it asks for nothing."""
        self._sender.poll()
        self._receiver.poll()

    async def stop(self) -> None:
        """Before the storage thread and the scan thread end."""
        await self._receiver.stop()
        await self._sender.stop()

    # --- what the node looks at --------------------------------------------------------------------------------

    @property
    def unreadable(self) -> str:
        """Why nothing can be read here now; empty where it can."""
        return self._receiver.unreadable

    @property
    def is_installing(self) -> bool:
        """True from before the driver is paused for an installation until it goes on."""
        return self._receiver.is_installing

    @property
    def counts(self) -> SnapshotCounts:
        sender = self._sender
        return SnapshotCounts(sender.made, sender.sent_bytes, self._receiver.installed)

    @property
    def held_index(self) -> int | None:
        """The log should not drop entries above this index, within bounds: members get a snapshot up to there now, and
        go on from its log. None where nothing is held."""
        return self._sender.held_index

    @property
    def progress(self) -> ReceiverProgress | None:
        """How far a snapshot is that is being brought here; None where there is none."""
        return self._receiver.progress

    # --- what others ask ---------------------------------------------------------------------------------------

    def read(self, snapshot_id: str, offset: int) -> AsyncGenerator[bytes, None]:
        """The bytes of a snapshot of ours from ``offset`` on; ``since-40`` asks for any of index 40 or above, which is
        made where there is none. On the node's loop alone. Raises, at the first piece, NotFound, InvalidArgument,
        ResourceExhausted, Unavailable."""
        return self._sender.read(snapshot_id, offset)

    def _changed(self) -> None:
        self._sender.is_whole = not self._receiver.unreadable
        self._on_change()
