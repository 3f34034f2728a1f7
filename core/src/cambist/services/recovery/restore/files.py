"""The files of the recovery manifest: each is whole or not there, and none takes the place of one that knows more."""

from __future__ import annotations

import glob
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

import msgspec

from .manifest import Manifest, RestoreError, read_manifest

LEFT_BEHIND_S = 3_600
"""After so long without a change, what was half written is nobody's any more."""


def accounts_path(manifest: Path) -> Path:
    """Return where the accounts are that belong to a manifest."""
    return manifest.with_name(f"{manifest.name}.accounts")


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a stream whose content takes the place of a file when all of it was written, for its owner's eyes.

    Raises OSError.
    """
    # A name that nobody else has: processes of several containers share folders, and each counts its own from 1.
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".partial", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            _remove_left_behind(path, os.fstat(descriptor).st_mtime)
            yield stream
            stream.flush()
            os.fsync(descriptor)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write_manifest(path: Path, manifest: Manifest) -> None:
    """Write it in one piece over what was there, for its owner's eyes. Raises OSError."""
    content = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
    with replacing(path) as stream:
        stream.write(content + b"\n")


def knows_more(old: Manifest, fresh: Manifest) -> bool:
    """Say whether a manifest knows of what one that was made after it was read does not.

    Merchants stay and indexes grow, so the database of the other one is new, or one of before.
    """
    indexes = {merchant.merchant_id: merchant.indexes for merchant in fresh.merchants}
    return any(
        merchant.merchant_id not in indexes
        or any(index > indexes[merchant.merchant_id].get(key, 0) for key, index in merchant.indexes.items())
        for merchant in old.merchants
    )


def read_before(path: Path) -> tuple[Manifest | None, str]:
    """Return the manifest that is in the way of the next one, or why it cannot be read; (None, "") where none is."""
    if not path.exists():
        return None, ""
    try:
        return read_manifest(path), ""
    except RestoreError as error:
        return None, str(error)


def move_aside(path: Path) -> Path:
    """Give a manifest and its accounts another name, which says since when they are as they are; return it.

    Raises OSError.
    """
    newest = path if path.exists() else accounts_path(path)
    since = datetime.fromtimestamp(newest.stat().st_mtime, UTC)
    kept, number = path.with_stem(f"{path.stem}-{since:%Y%m%dT%H%M%SZ}"), 1
    while kept.exists() or accounts_path(kept).exists():
        number += 1
        kept = path.with_stem(f"{path.stem}-{since:%Y%m%dT%H%M%SZ}-{number}")
    # The manifest last: while it is there, what a crash left is done the next time.
    with suppress(FileNotFoundError):
        accounts_path(path).replace(accounts_path(kept))
    with suppress(FileNotFoundError):
        path.replace(kept)
    return kept


def _remove_left_behind(path: Path, now: float) -> None:
    """Remove what was half written when its process was killed: of very many accounts it is large.

    ``now`` is the file system's own time.
    """
    for partial in path.parent.glob(f"{glob.escape(path.name)}.*.partial"):
        with suppress(OSError):
            if now - partial.stat().st_mtime > LEFT_BEHIND_S:
                partial.unlink()
