"""Encodes and decodes the CloudEvent envelope as protobuf bytes, by hand, so that the package needs no protobuf library.

Fields: id=1, source=2, spec_version=3, type=4, attributes=5 (map), binary_data=6, text_data=7. Unknown
fields are skipped, as protobuf asks.
"""
from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, Tuple, Union

# Wire types of protobuf: how a field's value is written.
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_TEXTS = {1: 'id', 2: 'source', 3: 'spec_version', 4: 'type'}
_BINARY_DATA, _TEXT_DATA, _ATTRIBUTES = 6, 7, 5
_STRING_KINDS = (3, 5, 6)  # ce_string, ce_uri, ce_uri_ref


@dataclass
class Event:
    type: str = ''
    text: str = ''
    id: str = ''
    source: str = 'pawl-python'
    spec_version: str = '1.0'
    attributes: Dict[str, str] = field(default_factory=dict)

    @property
    def body(self) -> Dict[str, Any]:
        value = json.loads(self.text or 'null')
        return value if isinstance(value, dict) else {}


# The payload carries an id of its own, and the envelope has the same one.
def event(type: str, payload: Dict[str, Any]) -> Event:
    payload.setdefault('id', str(uuid.uuid4()))
    return Event(type, json.dumps(payload), payload['id'])


def encode(e: Event) -> bytes:
    out = bytearray()
    for number, name in _TEXTS.items():
        _put(out, number, getattr(e, name).encode())
    _put(out, _TEXT_DATA, e.text.encode())
    return bytes(out)


def decode(data: bytes) -> Event:
    e = Event(source='')
    for number, value in _fields(data):
        if not isinstance(value, bytes):
            continue
        if number in _TEXTS:
            setattr(e, _TEXTS[number], value.decode())
        elif number in (_BINARY_DATA, _TEXT_DATA):
            e.text = value.decode()
        elif number == _ATTRIBUTES:
            # An attribute is a map entry: key = 1, value = 2. The value is a message with one field for each type that
            # it may have.
            entry = dict(_fields(value))
            for kind, text in _fields(_bytes(entry.get(2, b''))):
                if kind in _STRING_KINDS:
                    e.attributes[_bytes(entry.get(1, b'')).decode()] = _bytes(text).decode()
    return e


def _bytes(value: Union[int, bytes]) -> bytes:
    return value if isinstance(value, bytes) else b''


def _put(out: bytearray, number: int, data: bytes) -> None:
    """Appends a field of bytes. An empty value is left out, which is how protobuf writes a default."""
    if data:
        out.append(number << 3 | _BYTES)
        n = len(data)
        while n > 0x7f:
            out.append(n & 0x7f | 0x80)
            n >>= 7
        out.append(n)
        out += data


def _fields(data: bytes) -> Iterator[Tuple[int, Union[int, bytes]]]:
    """Yields (number, value) of each field: an int for a varint, bytes for everything else. Raises ValueError."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            if at >= len(data) or shift > 63:
                raise ValueError('cut off or malformed protobuf message')
            byte = data[at]
            at += 1
            value |= (byte & 0x7f) << shift
            if byte < 0x80:
                return value
            shift += 7

    while at < len(data):
        key = varint()
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            yield number, varint()
            continue
        if kind not in (_FIXED64, _BYTES, _FIXED32):
            raise ValueError(f'protobuf wire type {kind} is not known')
        size = varint() if kind == _BYTES else 8 if kind == _FIXED64 else 4
        if at + size > len(data):
            raise ValueError('cut off protobuf message')
        yield number, bytes(data[at:at + size])
        at += size
