"""The operator's two commands about damage: compare a replica with another one, and accept a loss."""

from __future__ import annotations

from cortado.errors import InvalidArgument, Unavailable, Unsupported
from cortado.store.clock.timestamp import TIMESTAMP_BYTES
from cortado.store.engine.interface import KEY_BYTES_MAX
from cortado.store.replica.controls import accepted_loss
from cortado.store.replica.replica import Replica, no_reply
from cortado.store.replica.write.proposals import EncodeReply, WriteResult


async def rebuild(replica: Replica) -> None:
    """Compare everything here with another member's, the leader's first, and make it the same.

    It serves damage that this replica's reads do not meet: the findings of a scrub's comparison. This node goes on
    serving meanwhile. Raises Unsupported if the node is alone, Unavailable if no other member can be asked.
    """
    if len(replica.configuration.members) < 2:
        raise Unsupported("rebuilding a node that is alone", "no other member has a copy; restore a backup")
    replica.check_serving()
    await replica.integrity.repairs.rebuild()


async def accept_loss(
    replica: Replica,
    engine_key: bytes,
    *,
    request_id: bytes = b"",
    request_hash: bytes = b"",
    encode_reply: EncodeReply = no_reply,
) -> WriteResult:
    """Give up, on every replica, the damaged item under a stored key if no member has a whole copy of it.

    Raises InvalidArgument if the stored item is not damaged, Unavailable if not every member has said that it has no
    whole copy, NotLeader.
    """
    if not TIMESTAMP_BYTES < len(engine_key) <= KEY_BYTES_MAX:
        problem = f"a stored key has {TIMESTAMP_BYTES + 1} to {KEY_BYTES_MAX} bytes"
        raise InvalidArgument("key", problem, f"{len(engine_key)} bytes")
    replica.check_serving()
    known = replica.known_requests.find(request_id, request_hash) if request_id else None
    if known is not None:
        return await replica.answer(known)
    reads, repairs = replica.reads, replica.integrity.repairs
    await reads.applied_to(await reads.linearize())
    loss = await repairs.check_lost(engine_key)
    if loss.request_floor >= (request_id or bytes(replica.process.clock.reading())):
        problem = "a request of the last moments may be among those that are lost: run the command again in a moment"
        raise Unavailable(problem, retry_delay_ms=1_000)
    result = await replica.write(
        accepted_loss(loss), request_id=request_id, request_hash=request_hash, encode_reply=encode_reply
    )
    await reads.caught_up()
    replica.forget_states()
    repairs.look_again()
    return result
