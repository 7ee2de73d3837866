from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class StoredAuth(_message.Message):
    __slots__ = ("enabled", "principals", "admins")
    ENABLED_FIELD_NUMBER: _ClassVar[int]
    PRINCIPALS_FIELD_NUMBER: _ClassVar[int]
    ADMINS_FIELD_NUMBER: _ClassVar[int]
    enabled: bool
    principals: int
    admins: int
    def __init__(self, enabled: bool = ..., principals: _Optional[int] = ..., admins: _Optional[int] = ...) -> None: ...

class StoredToken(_message.Message):
    __slots__ = ("token_id", "digest", "created_ms", "expires_ms")
    TOKEN_ID_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_MS_FIELD_NUMBER: _ClassVar[int]
    token_id: str
    digest: bytes
    created_ms: int
    expires_ms: int
    def __init__(self, token_id: _Optional[str] = ..., digest: _Optional[bytes] = ..., created_ms: _Optional[int] = ..., expires_ms: _Optional[int] = ...) -> None: ...

class StoredGrant(_message.Message):
    __slots__ = ("role", "resource")
    ROLE_FIELD_NUMBER: _ClassVar[int]
    RESOURCE_FIELD_NUMBER: _ClassVar[int]
    role: str
    resource: str
    def __init__(self, role: _Optional[str] = ..., resource: _Optional[str] = ...) -> None: ...

class StoredPrincipal(_message.Message):
    __slots__ = ("name", "kind", "tokens", "grants")
    NAME_FIELD_NUMBER: _ClassVar[int]
    KIND_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    GRANTS_FIELD_NUMBER: _ClassVar[int]
    name: str
    kind: str
    tokens: _containers.RepeatedCompositeFieldContainer[StoredToken]
    grants: _containers.RepeatedCompositeFieldContainer[StoredGrant]
    def __init__(self, name: _Optional[str] = ..., kind: _Optional[str] = ..., tokens: _Optional[_Iterable[_Union[StoredToken, _Mapping]]] = ..., grants: _Optional[_Iterable[_Union[StoredGrant, _Mapping]]] = ...) -> None: ...

class StoredTokenOwner(_message.Message):
    __slots__ = ("principal",)
    PRINCIPAL_FIELD_NUMBER: _ClassVar[int]
    principal: str
    def __init__(self, principal: _Optional[str] = ...) -> None: ...
