"""The runtime of asyncio: our HTTP/2 on the caller's loop, without threads of ours."""
