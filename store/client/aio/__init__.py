"""The runtime of asyncio: grpc.aio on the caller's loop, without threads of ours."""
