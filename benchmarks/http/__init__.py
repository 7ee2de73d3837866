"""The gateway's cost: the same calls by HTTP and JSON, and by the client that the gateway itself is made of."""
