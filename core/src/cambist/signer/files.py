"""Files that nobody else may read and that never replace one another."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


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


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
