"""Reads Arrow streams of the library with the standard library alone: for schemas and for a look at the first rows."""

from __future__ import annotations

import ctypes
import struct

from stepscope._errors import StepscopeError
from stepscope._native import ArrowArray, ArrowArrayStream, ArrowSchema
from stepscope._table import Column

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NUMBERS: dict[str, Any] = {
    "c": ctypes.c_int8, "C": ctypes.c_uint8, "s": ctypes.c_int16, "S": ctypes.c_uint16, "i": ctypes.c_int32,
    "I": ctypes.c_uint32, "l": ctypes.c_int64, "L": ctypes.c_uint64, "f": ctypes.c_float, "g": ctypes.c_double,
}  # fmt: skip


def read_schema(stream: ctypes._Pointer[ArrowArrayStream]) -> tuple[str, tuple[Column, ...]]:
    """The table's meaning and its columns."""
    schema = _schema(stream)
    try:
        meaning = _metadata(schema.metadata).get("stepscope.meaning", "")
        return meaning, tuple(_column(schema.children[i].contents) for i in range(schema.n_children))
    finally:
        schema.release(ctypes.byref(schema))


def read_rows(stream: ctypes._Pointer[ArrowArrayStream], limit: int | None) -> list[tuple[Any, ...]]:
    """At most `limit` rows as tuples of Python values; None: all."""
    schema = _schema(stream)
    rows: list[tuple[Any, ...]] = []
    try:
        while limit is None or len(rows) < limit:
            batch = ArrowArray()
            _check(stream, stream.contents.get_next(stream, ctypes.byref(batch)))
            if not batch.release:
                break
            try:
                wanted = batch.length if limit is None else min(batch.length, limit - len(rows))
                columns = [
                    _values(schema.children[i].contents, batch.children[i].contents, wanted)
                    for i in range(schema.n_children)
                ]
                rows.extend(zip(*columns))
            finally:
                batch.release(ctypes.byref(batch))
    finally:
        schema.release(ctypes.byref(schema))
    return rows


def _schema(stream: ctypes._Pointer[ArrowArrayStream]) -> ArrowSchema:
    schema = ArrowSchema()
    _check(stream, stream.contents.get_schema(stream, ctypes.byref(schema)))
    return schema


def _check(stream: ctypes._Pointer[ArrowArrayStream], code: int) -> None:
    if code != 0:
        message = stream.contents.get_last_error(stream) or b"the table could not be read"
        raise StepscopeError(message.decode(), "internal")


def _column(schema: ArrowSchema) -> Column:
    said = _metadata(schema.metadata)
    return Column(schema.name.decode(), _type(schema), said.get("unit", ""), said.get("meaning", ""))


def _type(schema: ArrowSchema) -> str:
    letter = schema.format.decode()
    if schema.dictionary or letter == "U":
        return "text"
    return "boolean" if letter == "b" else "real" if letter in "fg" else "integer"


def _metadata(address: int | None) -> dict[str, str]:
    """Arrow's encoding: the number of pairs, then each key and value with its length before it."""
    found: dict[str, str] = {}
    if not address:
        return found
    at = address

    def number() -> int:
        nonlocal at
        (value,) = struct.unpack("=i", ctypes.string_at(at, 4))
        at += 4
        return int(value)

    def text() -> str:
        nonlocal at
        size = number()
        value = ctypes.string_at(at, size).decode()
        at += size
        return value

    for _ in range(number()):
        key = text()
        found[key] = text()
    return found


def _values(schema: ArrowSchema, array: ArrowArray, rows: int) -> list[Any]:
    """The first `rows` values of a column."""
    letter = schema.format.decode()
    values: list[Any]
    if schema.dictionary:
        texts = _texts(schema.dictionary.contents, array.dictionary.contents)
        values = [texts[i] if texts else None for i in _numbers(array, "i", rows)]
    elif letter == "U":
        values = _texts(schema, array)[:rows]
    elif letter == "b":
        values = _bits(array.buffers[1], rows)
    else:
        values = _numbers(array, letter, rows)
    if array.null_count != 0:
        values = [value if valid else None for value, valid in zip(values, _bits(array.buffers[0], rows))]
    return values


def _numbers(array: ArrowArray, letter: str, rows: int) -> list[Any]:
    if rows == 0:
        return []
    return list((_NUMBERS[letter] * rows).from_address(array.buffers[1]))


def _bits(address: int, rows: int) -> list[bool]:
    packed = ctypes.string_at(address, (rows + 7) // 8)
    return [bool(packed[row >> 3] >> (row & 7) & 1) for row in range(rows)]


def _texts(schema: ArrowSchema, array: ArrowArray) -> list[str]:
    if array.length == 0:
        return []
    ends = (ctypes.c_int64 * (array.length + 1)).from_address(array.buffers[1])
    everything = ctypes.string_at(array.buffers[2], ends[array.length])
    return [everything[ends[i] : ends[i + 1]].decode() for i in range(array.length)]
