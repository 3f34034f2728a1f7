"""Files that nobody else may read and that never replace one another."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from pathlib import Path

ROOM_BYTES = 256 * 1_024


class KeystoreError(Exception):
    """The keystore cannot be used; the message is a sentence for the operator and holds nothing secret."""


def write_new(path: Path, content: bytes) -> None:
    """Write a file that did not exist, whole or not at all, for its owner's eyes only. Raises KeystoreError."""
    try:
        write_whole(path, content)
    except FileExistsError:
        raise KeystoreError(f"{path} exists already and is not replaced.") from None
    except OSError as error:
        raise KeystoreError(f"{path} cannot be written: {error.strerror}.") from None


def write_whole(path: Path, content: bytes) -> None:
    """Do what ``write_new`` does. Raises OSError, and FileExistsError where there is a file."""
    # A name of its own each time: one that a killed process left would stand in the way of the next of its number,
    # and in a container each start has the same one.
    descriptor, name = tempfile.mkstemp(prefix=f"{path.name}.", suffix=".partial", dir=path.parent)
    partial = Path(name)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(descriptor)
        os.link(partial, path)  # unlike a rename, refuses to replace
    finally:
        partial.unlink()
    sync_folder(path.parent)


def why_not_written(path: Path) -> str | None:
    """Say why nothing more can be written to a folder or a file; None where something can be."""
    if not os.access(path, os.W_OK):
        return "may not be written to"
    if path.is_file():  # its folder may take no others, and lie on another disk: a container is given files one by one
        is_full = shutil.disk_usage(path).free < ROOM_BYTES
        return f"takes no more: {os.strerror(errno.ENOSPC)}" if is_full else None
    try:
        with tempfile.TemporaryFile(dir=path) as stream:
            stream.write(bytes(ROOM_BYTES))
    except OSError as error:
        return f"takes no more: {error.strerror}"
    return None


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
