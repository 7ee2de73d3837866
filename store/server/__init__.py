"""The gRPC server: services over a node, and the composition root."""

from cortado.store.process.limits import NodeLimits
from cortado.store.server.config import ServerConfig
from cortado.store.server.exits import ServerEnded
from cortado.store.server.serving import serve

__all__ = ["NodeLimits", "ServerConfig", "ServerEnded", "serve"]
