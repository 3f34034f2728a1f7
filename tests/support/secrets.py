"""Looks for what must not be there: secrets in whatever spelling, wherever a program may have left them."""

from __future__ import annotations

import base64
import ctypes
import os
import struct
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psutil
from mnemonic import Mnemonic

from cambist.db.engine import Database
from cambist.signer.bip32 import master_node
from cambist.signer.keystore import Keystore, open_keystore
from tests.support.descendants import everything_below

IN_OPEN = 0x20
CHUNK_BYTES_MAX = 1 << 26
WORD_BYTES = 8
SECRET_BYTES_MIN = 2 * WORD_BYTES - 1
EVENT = struct.Struct("iIII")
COIN_TYPES = {"evm": 60, "tron": 195}


def keystore_of(data: Path) -> Keystore:
    """Open the keystore that a gateway made for itself in its data directory."""
    return open_keystore(data / "keystore.json", (data / "keystore.passphrase").read_text().strip())


def secrets_of(keystore: Keystore, passphrase: str) -> dict[str, bytes]:
    """Return what a keystore's owner must never see anywhere, by name."""
    words = Mnemonic("english")
    found = {"passphrase": passphrase.encode(), "mnemonic": keystore.mnemonic.encode()}
    found["entropy"] = bytes(words.to_entropy(keystore.mnemonic))
    for mode, extra in (("live", ""), ("sandbox", "cambist sandbox")):
        seed = words.to_seed(keystore.mnemonic, extra)
        master = master_node(seed)
        found |= {f"{mode} seed": seed, f"{mode} master key": master.key, f"{mode} chain code": master.chain_code}
        purpose = master.hardened(44)
        found[f"{mode} m/44'"] = purpose.key
        found |= {f"{mode} m/44'/{coin}'": purpose.hardened(coin).key for coin in COIN_TYPES.values()}
    return found


def spellings(name: str, secret: bytes) -> dict[str, bytes]:
    """Return a secret as it is, and as programs write bytes."""
    found = {name: secret}
    if not secret.isascii():
        found |= {
            f"{name} in hex": secret.hex().encode(),
            f"{name} in HEX": secret.hex().upper().encode(),
            f"{name} in base64": base64.b64encode(secret).rstrip(b"="),
            f"{name} in base64 for URLs": base64.urlsafe_b64encode(secret).rstrip(b"="),
            f"{name} as a number": str(int.from_bytes(secret, "big")).encode(),
        }
    return found


class Finder:
    """Knows the spellings of some secrets, and that an extended private key begins with ``xprv``.

    However many there are, they are looked for in one go: each is so long that one of the whole 64-bit words of what is
    looked at is within it, wherever it stands.
    """

    def __init__(self, secrets: Mapping[str, bytes]) -> None:
        self._needles: dict[str, bytes] = {}
        for name, secret in secrets.items():
            self._needles |= spellings(name, secret)
        self._names: dict[int, set[str]] = {}
        for name, needle in self._needles.items():
            assert len(needle) >= SECRET_BYTES_MIN, name
            for start in range(WORD_BYTES):
                word = int.from_bytes(needle[start : start + WORD_BYTES], sys.byteorder)
                self._names.setdefault(word, set()).add(name)

    def find(self, content: bytes) -> set[str]:
        """Return the names of the secrets that stand in it."""
        words = memoryview(content)[: len(content) // WORD_BYTES * WORD_BYTES].cast("Q")
        seen = {name for word in self._names.keys() & words for name in self._names[word]}
        found = {name for name in seen if self._needles[name] in content}
        return found | ({"an extended private key"} if b"xprv9" in content else set())

    async def in_database(self, db: Database) -> dict[str, set[str]]:
        """Read every column of every table, bytes as bytes and everything else as text; return where what stands."""
        found: dict[str, set[str]] = {}
        async with db.transaction() as conn:
            columns = await conn.exec_driver_sql(
                "SELECT table_name, column_name, data_type FROM information_schema.columns"
                " WHERE table_schema = 'public'"
            )
            for table, column, kind in columns.all():
                value = f'"{column}"' if kind == "bytea" else f'"{column}"::text'
                rows = await conn.exec_driver_sql(f'SELECT {value} FROM "{table}" WHERE "{column}" IS NOT NULL')  # noqa: S608  our own names
                # All at once: to look for each secret in each cell by itself takes ten times as long.
                cells = (cell if isinstance(cell, bytes) else cell.encode() for cell in rows.scalars())
                if names := self.find(b"\n".join(cells)):
                    found[f"{table}.{column}"] = names
        return found

    def in_memory(
        self, process: psutil.Process, *, enough: Callable[[Collection[str]], bool] = lambda _: False
    ) -> set[str]:
        """Return what stands in the writable memory of a process, or in the first of it that has enough.

        Raises PermissionError.
        """
        found: set[str] = set()
        for content in memory(process):
            found |= self.find(content)
            if enough(found):
                break
        return found


def memory(process: psutil.Process) -> Iterator[bytes]:
    """Yield a process's writable memory, with pieces that overlap by more than the longest secret."""
    maps = Path(f"/proc/{process.pid}/maps").read_text().splitlines()
    with Path(f"/proc/{process.pid}/mem").open("rb", buffering=0) as stream:
        for line in maps:
            start, end = (int(number, 16) for number in line.split()[0].split("-"))
            if "rw" not in line.split()[1] or "[v" in line:
                continue
            for first in range(start, end, CHUNK_BYTES_MAX):
                try:
                    stream.seek(first)
                    yield stream.read(min(CHUNK_BYTES_MAX + 1024, end - first)) or b""
                except OSError:  # it has been given back meanwhile
                    continue


def family_of(process: psutil.Process) -> list[psutil.Process]:
    """Return a process and all that it has started."""
    return [process, *everything_below(process.pid)]


class Openings:
    """Counts how often anybody opens some files, as the kernel tells it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def count(self) -> int:
        """Return how often since the last time."""
        found = 0
        while True:
            try:
                events = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return found
            while events:
                *_, name_bytes = EVENT.unpack_from(events)
                found, events = found + 1, events[EVENT.size + name_bytes :]


@contextmanager
def watch_openings(paths: Iterable[Path]) -> Iterator[Openings]:
    """Watch files with inotify."""
    libc = ctypes.CDLL(None, use_errno=True)
    descriptor = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert descriptor >= 0, os.strerror(ctypes.get_errno())
    try:
        for path in paths:
            assert libc.inotify_add_watch(descriptor, os.fsencode(path), IN_OPEN) >= 0, path
        yield Openings(descriptor)
    finally:
        os.close(descriptor)
