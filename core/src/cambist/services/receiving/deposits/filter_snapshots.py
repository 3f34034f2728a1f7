"""A filter of addresses as a file: whole and of the same database, or refused."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import struct
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import IO

import msgspec
from msgspec import Struct

from .address_filter import KEY_VERSION, SEGMENTS, AddressFilter, Layer

MAGIC = b"cambist-filter\x01\n"
HEADER_BYTES_MAX = 1 << 20
CHECKSUM_BYTES = 32
SEGMENT_HEAD_BYTES = 8
MODE = 0o600
LIBRARIES = ("rbloom", "xxhash")

_LENGTH = struct.Struct(">I")


class SnapshotError(Exception):
    """The snapshot is of no use; the message says why, for the log."""


class Origin(Struct, frozen=True, kw_only=True):
    """Which tables in which history of which server: with any other, what a filter knows may be wrong.

    A restored backup goes on under another timeline, a promoted standby too; a table that was loaded anew lies in
    other files.
    """

    system_identifier: str
    timeline: str
    database: int
    files: list[int]


class Witness(Struct, frozen=True, kw_only=True):
    """The newest address that a filter surely has. Everything after its transaction is read again.

    Where it is gone, the database has been turned back to a moment before the snapshot.
    """

    address: str
    xid: int


class Header(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What comes before the bits: of which addresses they are, and how they were made."""

    mode: str
    family: str
    origin: Origin
    witness: Witness
    key_version: int = KEY_VERSION
    libraries: dict[str, str] = msgspec.field(default_factory=lambda: {name: version(name) for name in LIBRARIES})
    seed: int
    count: int
    layers: list[Layer]


def write(path: Path, header: Header, content: AddressFilter) -> bool:
    """Write it in one piece over what was there, for its owner's eyes; not while another process does. Raises OSError.

    Returns whether it was written.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _lock(path) as mine:
        if not mine:
            return False
        partial = path.with_name(f"{path.name}.partial")
        partial.unlink(missing_ok=True)  # of a process that was killed
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, MODE)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                _write_to(stream, header, content)
                stream.flush()
                os.fsync(descriptor)
            partial.replace(path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
        _sync_folder(path.parent)
    return True


def read(path: Path, *, mode: str, family: str, origin: Origin) -> tuple[Header, AddressFilter]:
    """Return what a file holds. Raises SnapshotError unless it is whole, and of these addresses."""
    try:
        with path.open("rb") as stream:
            return _read_from(stream, mode, family, origin)
    except FileNotFoundError:
        raise SnapshotError("there is none") from None
    except OSError as error:
        raise SnapshotError(f"it cannot be read: {error.strerror}") from None


def _write_to(stream: IO[bytes], header: Header, content: AddressFilter) -> None:
    checksum = hashlib.blake2b(digest_size=CHECKSUM_BYTES)
    head = msgspec.json.encode(header)
    for piece in (MAGIC, _LENGTH.pack(len(head)), head):
        checksum.update(piece)
        stream.write(piece)
    for piece in content.pieces(len(header.layers)):
        checksum.update(piece)
        stream.write(piece)
    stream.write(checksum.digest())


def _read_from(stream: IO[bytes], mode: str, family: str, origin: Origin) -> tuple[Header, AddressFilter]:
    checksum = hashlib.blake2b(digest_size=CHECKSUM_BYTES)

    def take(length: int) -> bytes:
        piece = stream.read(length)
        if len(piece) != length:
            raise SnapshotError("it ends early")
        checksum.update(piece)
        return piece

    if take(len(MAGIC)) != MAGIC:
        raise SnapshotError("it is no snapshot of this version")
    (length,) = _LENGTH.unpack(take(_LENGTH.size))
    if length > HEADER_BYTES_MAX:
        raise SnapshotError("it is damaged")
    try:
        header = msgspec.json.decode(take(length), type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise SnapshotError("it is damaged") from None
    _check(header, mode, family, origin)
    # Its size is known from here on, so no damage in the header can ask for more memory than the file has.
    size = stream.tell() + sum(layer.segment_bytes for layer in header.layers) * SEGMENTS + CHECKSUM_BYTES
    if os.fstat(stream.fileno()).st_size != size:
        raise SnapshotError("it is not as long as it says")
    pieces = (take(layer.segment_bytes) for layer in header.layers for _ in range(SEGMENTS))
    content = AddressFilter.of_pieces(header.seed, header.count, header.layers, pieces)
    if stream.read() != checksum.digest():
        raise SnapshotError("its checksum is wrong")
    return header, content


def _check(header: Header, mode: str, family: str, origin: Origin) -> None:
    if (header.mode, header.family) != (mode, family):
        raise SnapshotError("it is of other addresses")
    if header.origin != origin:
        raise SnapshotError("it is of another database, or of another history of it")
    if header.key_version != KEY_VERSION or header.libraries != {name: version(name) for name in LIBRARIES}:
        raise SnapshotError("it was made by another version")
    # Fewer bytes than these cannot be a segment, and rbloom does not say so politely.
    small = any(layer.room < 1 or layer.segment_bytes <= SEGMENT_HEAD_BYTES for layer in header.layers)
    if small or header.count > sum(layer.room for layer in header.layers):
        raise SnapshotError("it is damaged")


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[bool]:
    """Yield whether no other process writes this file; the lock goes with the process, however it ends."""
    descriptor = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT, MODE)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def _sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
