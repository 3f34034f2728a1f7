"""Files that nobody else may read and that never replace one another."""

from __future__ import annotations

import os
from pathlib import Path


class KeystoreError(Exception):
    """The keystore cannot be used; the message is a sentence for the operator and holds nothing secret."""


def write_new(path: Path, content: bytes) -> None:
    """Write a file that did not exist, whole or not at all, for its owner's eyes only. Raises KeystoreError."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(content)
                stream.flush()
                os.fsync(descriptor)
            os.link(partial, path)  # unlike a rename, refuses to replace
        finally:
            partial.unlink()
        sync_folder(path.parent)
    except FileExistsError:
        raise KeystoreError(f"{path} exists already and is not replaced.") from None
    except OSError as error:
        raise KeystoreError(f"{path} cannot be written: {error.strerror}.") from None


def sync_folder(path: Path) -> None:
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
