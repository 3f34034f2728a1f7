"""The tables of the signer's store, and what each version of them adds to the one before."""

from __future__ import annotations

import errno
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import structlog

from .files import write_whole

log = structlog.get_logger(__name__)

# What each version adds to the one before. What is remembered keeps a signer from signing twice: it is never made anew.
VERSIONS = (
    """
CREATE TABLE state (id INTEGER PRIMARY KEY CHECK (id = 1), now INTEGER NOT NULL, known INTEGER NOT NULL);
INSERT INTO state VALUES (1, 0, 0);
CREATE TABLE slots (
    id INTEGER PRIMARY KEY AUTOINCREMENT, slot TEXT NOT NULL UNIQUE, at INTEGER NOT NULL, counts BLOB NOT NULL
);
CREATE TABLE signed (
    id INTEGER PRIMARY KEY AUTOINCREMENT, chain TEXT NOT NULL, reference TEXT NOT NULL, slot TEXT NOT NULL,
    UNIQUE (chain, reference)
);
CREATE TABLE spent (
    counter TEXT NOT NULL, minute INTEGER NOT NULL, amount TEXT NOT NULL, PRIMARY KEY (counter, minute)
) WITHOUT ROWID;
CREATE TABLE known_addresses (
    chain TEXT NOT NULL, account INTEGER NOT NULL, address TEXT NOT NULL, since INTEGER NOT NULL,
    used_at INTEGER NOT NULL, PRIMARY KEY (chain, account, address)
) WITHOUT ROWID;
CREATE TABLE approvals (
    id INTEGER PRIMARY KEY AUTOINCREMENT, reference TEXT NOT NULL, purpose TEXT NOT NULL, asked_by TEXT NOT NULL,
    chain TEXT NOT NULL, asset TEXT NOT NULL, to_address TEXT NOT NULL, amount TEXT NOT NULL, text TEXT NOT NULL,
    asked_at INTEGER NOT NULL, approved_at INTEGER, slot TEXT
);
CREATE INDEX approvals_reference ON approvals (reference);
""",
    """
ALTER TABLE approvals ADD COLUMN to_chain TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN bought TEXT NOT NULL DEFAULT '';
ALTER TABLE approvals ADD COLUMN bought_min TEXT NOT NULL DEFAULT '0';
""",
    """
CREATE TABLE voided (
    id INTEGER PRIMARY KEY AUTOINCREMENT, chain TEXT NOT NULL, reference TEXT NOT NULL, at INTEGER NOT NULL,
    UNIQUE (chain, reference)
);
""",
    """
CREATE TABLE wrong_codes (id INTEGER PRIMARY KEY AUTOINCREMENT, at INTEGER NOT NULL);
""",
    """
ALTER TABLE voided ADD COLUMN denied INTEGER NOT NULL DEFAULT 0;
""",
)
VERSION = len(VERSIONS)

_PASSING_NUMBERS = {
    *(errno.EAGAIN, errno.EDQUOT, errno.EFBIG, errno.EINTR, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ENOMEM),
    *(errno.ENOSPC, errno.ESTALE),
}
_PASSING_CODES = {
    *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
    sqlite3.SQLITE_PROTOCOL,
}
"""What a disk that is full, fails or is locked for long says: it may be over the next time."""


class StoreError(Exception):
    """The store cannot be used, so nothing can be signed; the message is a sentence for the operator."""


class StoreUnavailableError(StoreError):
    """The store cannot be used now, and may be the next time."""


def unopened(folder: Path, error: OSError | sqlite3.Error) -> StoreError:
    """Return what to say of a store that could not be opened: whether that passes with time, its type says."""
    if isinstance(error, OSError):
        passes, text = error.errno in _PASSING_NUMBERS, f"cannot be opened: {error.strerror}"
    else:
        # The low byte is the kind of error; the others say which of its kind. Errors of the module itself have none.
        passes = getattr(error, "sqlite_errorcode", -1) & 0xFF in _PASSING_CODES
        text = f"cannot be used: {error}"
    return (StoreUnavailableError if passes else StoreError)(f"The signer's store {folder} {text}.")


def prepare(file: Path) -> None:
    """Make a store where none is, and check what is there. Raises StoreError, OSError and errors of sqlite3."""
    make(file)
    check_modes(file)
    check_content(file)


def make(file: Path) -> None:
    """Make a store that remembers nothing, in one piece, where none is. Raises OSError and errors of sqlite3."""
    try:
        with file.open("r+b"):  # who may not write cannot sign
            return
    except FileNotFoundError:
        pass
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.row_factory = sqlite3.Row
        _make_tables(connection, file)
        content = connection.serialize()
    with suppress(FileExistsError):  # another signer was faster
        write_whole(file, content)
        log.warning("signer_store_made", file=str(file), hint="nothing that was signed before is remembered in it")


def check_content(file: Path) -> None:
    """Refuse a file that was cut off to nothing, which SQLite takes for a new one. Raises StoreError and OSError.

    A store is made in one piece. So one without content has lost what was signed, and would sign it once more.
    """
    if not file.stat().st_size:
        raise StoreError(
            f"The signer's store {file} is empty: what was signed is lost with it, and what waits may have been sent."
            " Put its newest copy there, or look at the chain for all that waits before you delete it."
        )


def connect(file: Path, *, timeout_s: float) -> sqlite3.Connection:
    """Open the file, and bring its tables up to date. Raises StoreError, and errors of sqlite3."""
    connection = sqlite3.connect(file, timeout=timeout_s, isolation_level=None, check_same_thread=False)
    connection.row_factory = sqlite3.Row
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on disk before a signature leaves
        connection.execute("BEGIN IMMEDIATE")
        _make_tables(connection, file)
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def check_modes(file: Path) -> None:
    """Refuse a store that others may open. Raises StoreError and OSError."""
    for path, mode in ((file.parent, 700), (file, 600)):
        if path.stat().st_mode & 0o077:
            raise StoreError(f"The signer's store {path} is open to others: run 'chmod {mode} {path}'.")


def check(file: Path) -> None:
    """Read all of a store, if there is one, and change nothing. Raises StoreError with what is wrong."""
    try:
        if not file.exists():
            return
        check_modes(file)
        check_content(file)
        with file.open("r+b"):  # who may not write cannot sign
            pass
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            _known_version(connection, file)
            found = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
    except OSError as error:
        raise StoreError(f"The signer's store {file} cannot be opened: {error.strerror}.") from error
    except sqlite3.Error as error:
        raise StoreError(f"The signer's store {file} cannot be used: {error}.") from error
    if found != "ok":
        raise StoreError(f"The signer's store {file} is damaged: {found}.")


def _known_version(connection: sqlite3.Connection, file: Path) -> int:
    version: int = connection.execute("PRAGMA user_version").fetchone()["user_version"]
    if version not in range(VERSION + 1):
        raise StoreError(f"The signer's store {file} is of version {version}, not {VERSION}.")
    return version


def _make_tables(connection: sqlite3.Connection, file: Path) -> None:
    version = _known_version(connection, file)
    for statements in VERSIONS[version:]:
        for statement in filter(str.strip, statements.split(";")):
            connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {VERSION}")
