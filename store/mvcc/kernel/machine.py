"""The machine's operations that the kernel uses: bytes at addresses, copies, CRC-32C.

Addresses are plain integers: an array that is passed on costs a count of its references at every call. Nothing is
checked here: the caller has checked that the bytes are there. Numbers are little-endian, as on every machine that the
kernel runs on.

CRC-32C is the processor's own instruction if it has one (SSE 4.2), eight bytes at a time, and else eight tables. The
*register* is the CRC before its last inversion: begin with :data:`REGISTER`, and bytes followed by their own CRC leave
it at :data:`INTACT`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

from cortado.store.mvcc.versions import RESIDUE

F = TypeVar("F", bound=Callable[..., Any])

inlined: Final[Callable[[Callable[..., Any]], Any]] = intrinsic
"""Wraps a function that gives a type, and a function that generates the code."""

REGISTER: Final = np.uint64(0xFFFFFFFF)
INTACT: Final = np.uint64(RESIDUE ^ 0xFFFFFFFF)
HAS_CRC: Final = bool(llvm.get_host_cpu_features().get("sse4.2"))

_POLYNOMIAL: Final = 0x82F63B78


def compiled(function: F) -> F:
    """Compile the function when it is first called, or take it from the cache; it runs without the interpreter's lock.
    Raises RuntimeError if the cache cannot be written."""
    return njit(nogil=True, cache=True, error_model="numpy")(function)  # type: ignore[no-any-return]


def in_place(function: F) -> F:
    """As :func:`compiled`, and copied into its callers: for a short function that is called for each row or value."""
    return njit(nogil=True, cache=True, error_model="numpy", forceinline=True)(function)  # type: ignore[no-any-return]


def _loader(bits: int) -> Any:
    """Return a loader of little-endian bits at any address, as int64; 64 of them as uint64."""
    result = types.uint64 if bits == 64 else types.int64

    @inlined
    def load(_context: Any, address: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(arguments[0], kind.as_pointer()), align=1)
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return result(types.int64), generate

    return load


load1, load2, load4, load8 = _loader(8), _loader(16), _loader(32), _loader(64)


@inlined
def load8_ordered(_context: Any, address: Any) -> Any:
    """Return eight bytes at an address as a number that sorts as they do."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        pointer = builder.inttoptr(arguments[0], ir.IntType(64).as_pointer())
        return builder.bswap(builder.load(pointer, align=1))

    return types.uint64(types.int64), generate


@inlined
def low_zeros(_context: Any, word: Any) -> Any:
    """Return how many of the lowest bits of a number that is not 0 are 0."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.cttz(arguments[0], ir.IntType(1)(1))

    return types.int64(types.uint64), generate


@inlined
def copy(_context: Any, target: Any, source: Any, size_bytes: Any) -> Any:
    """Copy bytes from one address to another; the two don't overlap."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        to, source = (builder.inttoptr(each, byte) for each in arguments[:2])
        cgutils.raw_memcpy(builder, to, source, arguments[2], 1)
        return _context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


@inlined
def number_at(_context: Any, address: Any, index: Any) -> Any:
    """Return the signed number at this index of an array of 64 bits each."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.load(_element(builder, *arguments))

    return types.int64(types.int64, types.int64), generate


@inlined
def set_number(_context: Any, address: Any, index: Any, value: Any) -> Any:
    def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        builder.store(arguments[2], _element(builder, *arguments[:2]))
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


def _storer(bits: int) -> Any:
    """Return a function that stores the lowest bits of a number at any address."""

    @inlined
    def store(_context: Any, address: Any, value: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind = ir.IntType(bits)
            value = arguments[1] if bits == 64 else builder.trunc(arguments[1], kind)
            builder.store(value, builder.inttoptr(arguments[0], kind.as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), generate

    return store


store1, store4, store8 = _storer(8), _storer(32), _storer(64)


def _element(builder: Any, address: Any, index: Any) -> Any:
    word = ir.IntType(64)
    return builder.inttoptr(builder.add(address, builder.shl(index, word(3))), word.as_pointer())


def _crc_step(bits: int) -> Any:
    """Return a function that feeds some bits more to the register, by the processor's instruction."""
    width = 64 if bits == 64 else 32
    instruction = f"llvm.x86.sse42.crc32.{width}.{bits}"

    @inlined
    def step(_context: Any, register: Any, data: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            kind, given = ir.IntType(width), ir.IntType(bits)
            function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind, given]), instruction)
            register, data = arguments
            if bits != 64:
                register = builder.trunc(register, kind)
                data = builder.trunc(data, given)
            after = builder.call(function, [register, data])
            return after if bits == 64 else builder.zext(after, ir.IntType(64))

        return types.uint64(types.uint64, types.uint64), generate

    return step


_step8, _step4, _step2, _step1 = _crc_step(64), _crc_step(32), _crc_step(16), _crc_step(8)


def _crc_tables() -> Any:
    """Return a byte's effect on the register, with none to seven bytes of zeros behind it."""
    table = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        table = (table >> np.uint64(1)) ^ np.where(table & np.uint64(1), np.uint64(_POLYNOMIAL), np.uint64(0))
    tables = [table]
    for _ in range(7):
        tables.append(table[tables[-1] & np.uint64(0xFF)] ^ (tables[-1] >> np.uint64(8)))
    return np.stack(tables)


_TABLES: Final = _crc_tables()


@compiled
def crc_by_tables(register: Any, address: Any, size_bytes: Any) -> Any:
    """Return the register after ``size_bytes`` more."""
    register, place, end = np.uint64(register), address, address + size_bytes
    byte = np.uint64(0xFF)
    while place + 8 <= end:
        word = load8(place) ^ register
        register = np.uint64(0)
        for lane in range(8):
            register ^= _TABLES[7 - lane, (word >> np.uint64(8 * lane)) & byte]
        place += 8
    while place < end:
        register = _TABLES[0, (register ^ np.uint64(load1(place))) & byte] ^ (register >> np.uint64(8))
        place += 1
    return register


@compiled
def crc_by_processor(register: Any, address: Any, size_bytes: Any) -> Any:
    """Return the same as :func:`crc_by_tables`. Only if HAS_CRC."""
    register, place, end = np.uint64(register), address, address + size_bytes
    while place + 8 <= end:
        register = _step8(register, load8(place))
        place += 8
    left = end - place
    if left & 4:
        register = _step4(register, np.uint64(load4(place)))
        place += 4
    if left & 2:
        register = _step2(register, np.uint64(load2(place)))
        place += 2
    if left & 1:
        register = _step1(register, np.uint64(load1(place)))
    return register


crc: Final = crc_by_processor if HAS_CRC else crc_by_tables


@in_place
def copy_short(target: Any, source: Any, size_bytes: Any) -> Any:
    """Copy as :func:`copy`, without a call if there are 4 bytes, or 8 to 16."""
    if size_bytes == 4:
        store4(target, load4(source))
    elif 8 <= size_bytes <= 16:
        first, last = np.int64(load8(source)), np.int64(load8(source + size_bytes - 8))
        store8(target, first)
        store8(target + size_bytes - 8, last)
    else:
        copy(target, source, size_bytes)


@compiled
def first_difference(left: Any, right: Any, size_bytes: Any) -> Any:
    """Return the place of the first byte in which the two differ; ``size_bytes`` if they are equal."""
    place = 0
    while place + 8 <= size_bytes:
        word = load8(left + place) ^ load8(right + place)
        if word != 0:
            return place + (low_zeros(word) >> 3)
        place += 8
    while place < size_bytes:
        if load1(left + place) != load1(right + place):
            return place
        place += 1
    return size_bytes


@compiled
def compare(left: Any, left_bytes: Any, right: Any, right_bytes: Any) -> Any:
    """Return a number below, equal to or above 0, as the bytes at ``left`` are below, equal to or above ``right``'s."""
    shorter = min(left_bytes, right_bytes)
    place = first_difference(left, right, shorter)
    if place < shorter:
        return load1(left + place) - load1(right + place)
    return left_bytes - right_bytes
