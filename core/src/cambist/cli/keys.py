"""``cambist keys``: the keystore in the operator's hands."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import click
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.bootstrap import secrets_box
from cambist.ports import SystemClock, system_ids
from cambist.secrets import SecretsError
from cambist.services.addresses.macs import AddressMacs
from cambist.services.audit.entries import Action, record
from cambist.services.recovery.reencryption import COLUMNS, PROOFS, reencrypt_some, renew_some
from cambist.settings import Settings
from cambist.signer.bip32 import HARDENED
from cambist.signer.files import KeystoreError
from cambist.signer.keystore import (
    MODES,
    PASSPHRASE_CHARS_MIN,
    Keystore,
    change_passphrase,
    new_keystore,
    open_keystore,
    save_keystore,
)

from .opened import opened_database, person, reason
from .options import Invocation, settings_options
from .terminal import echo

_WARNING = """
These {count} words are the money. Whoever reads them can take it; without them and the
keystore's passphrase it is lost. Write them on paper now: they are not shown again.
"""
_XPUB_WARNING = """
An extended public key shows every address of its account, past and future. Together with the
private key of any one of them it gives the keys of all: let neither out.
"""
_COUNT_MAX = 1_000

PATH = click.Path(path_type=Path, dir_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
INDEX = click.IntRange(0, 2**31 - 1)
passphrase_option = click.option(
    "--passphrase-file", type=FILE, help="Read the passphrase from this file instead of asking."
)


@click.group()
def keys() -> None:
    """Make and keep the keystore that all addresses come from."""


@keys.command()
@click.argument("path", type=PATH)
@passphrase_option
@click.option("--import", "imports", is_flag=True, help="Ask for the words of an existing mnemonic.")
def init(path: Path, passphrase_file: Path | None, *, imports: bool) -> None:
    """Make a keystore at PATH, and show its mnemonic once.

    A file that exists is never replaced.
    """
    try:
        exists = path.exists()
    except OSError as error:
        raise click.ClickException(f"{path} cannot be written: {error.strerror}.") from error
    if exists:
        raise click.ClickException(f"{path} exists already and is not replaced.")
    ids = system_ids()
    try:
        keystore = Keystore(click.prompt("Mnemonic", hide_input=True)) if imports else new_keystore(ids.random_bytes)
        save_keystore(path, keystore, _passphrase(passphrase_file, confirm=True), ids.random_bytes)
    except KeystoreError as error:
        raise click.ClickException(str(error)) from error
    if not imports:
        words = keystore.mnemonic.split()
        echo(_WARNING.format(count=len(words)))
        for row in range(0, len(words), 6):
            echo("  " + "  ".join(f"{row + at + 1:2d} {word:10s}" for at, word in enumerate(words[row : row + 6])))
    echo(f"\nThe keystore is {path}. Set keys.keystore and keys.passphrase to use it.")


@keys.command(name="show-xpubs")
@click.argument("path", type=FILE)
@passphrase_option
@click.option("--mode", type=click.Choice(MODES), default="live", show_default=True)
@click.option("--coin", type=INDEX, default=60, show_default=True, help="The SLIP-44 number: 60 for EVM, 195 for Tron.")
@click.option("--accounts", default="0", show_default=True, help="One, or several as in 1-20; 0 is the platform's.")
def show_xpubs(path: Path, passphrase_file: Path | None, mode: str, coin: int, accounts: str) -> None:
    """Show extended public keys of the keystore at PATH, by which addresses can be checked with another wallet."""
    wanted = _accounts(accounts)
    try:
        keystore = open_keystore(path, _passphrase(passphrase_file))
    except KeystoreError as error:
        raise click.ClickException(str(error)) from error
    echo(_XPUB_WARNING, err=True)
    for index in wanted:
        echo(f"m/44'/{coin}'/{index}'  {keystore.account_xpub(mode, coin, index)}")


@keys.command(name="rotate-passphrase")
@click.argument("path", type=FILE)
@passphrase_option
@click.option("--new-passphrase-file", type=FILE, help="Read the new one from this file instead of asking.")
def rotate_passphrase(path: Path, passphrase_file: Path | None, new_passphrase_file: Path | None) -> None:
    """Change what opens the keystore at PATH. The words stay the same, and no copy of the old file is kept.

    Backups of the old file are still opened by the old passphrase: destroy them.
    """
    old = _passphrase(passphrase_file)
    new = _passphrase(new_passphrase_file, confirm=True, name="New passphrase")
    try:
        change_passphrase(path, old, new, system_ids().random_bytes)
    except KeystoreError as error:
        raise click.ClickException(str(error)) from error
    echo(f"{path} is opened by the new passphrase. Set keys.passphrase, and destroy backups of the old file.")


@keys.command()
@settings_options
def reencrypt(invocation: Invocation) -> None:
    """Encrypt anew, with keys.application_key, whatever the database holds under one of keys.previous_keys.

    The proofs of accounts' addresses are made anew with it, too.
    Harmless to repeat, and while the gateway runs. Restart every process with the new key first.
    """
    settings = invocation.settings()
    try:
        done = asyncio.run(_reencrypted(settings))
    except (SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"The database cannot be written: {reason(error)}.") from error
    except SecretsError as error:
        raise click.ClickException(f"{error}. Put the key that is missing into keys.previous_keys.") from error
    echo(f"Encrypted anew: {done.encrypted}. All that is encrypted in the database is under keys.application_key now.")
    echo(f"Proven anew: {done.proven} addresses of accounts.")
    if done.unverified:
        raise click.ClickException(
            f"{done.unverified} addresses of accounts cannot be verified and were left as they are, shown to nobody. "
            "Put the key that proved them into keys.previous_keys; if it is there, their rows were changed. "
            "The log names the accounts."
        )


class _Done(Struct):
    """What was brought under the newest key so far."""

    encrypted: int = 0
    proven: int = 0
    unverified: int = 0


async def _reencrypted(settings: Settings) -> _Done:
    box, count = secrets_box(settings, system_ids()), _Done()
    async with opened_database(settings, "keys", "what is encrypted is there.") as database:
        for sealed in COLUMNS:
            more = True
            while more:
                async with database.transaction() as conn:
                    rows = await reencrypt_some(conn, box, sealed)
                    await _audit(conn, sealed.name, rows)
                count.encrypted += rows
                more = rows > 0
        macs, after = AddressMacs(box), None
        more = True
        while more:
            async with database.transaction() as conn:
                renewed = await renew_some(conn, macs, after)
                await _audit(conn, PROOFS, renewed.rows)
            count.proven += renewed.rows
            count.unverified += renewed.unverified
            after = renewed.last
            more = after is not None
    return count


async def _audit(conn: AsyncConnection, column: str, rows: int) -> None:
    if rows:
        told = {"column": column, "rows": rows}
        await record(conn, person(), Action.REENCRYPTED, SystemClock().now(), details=told, line=False)


def _accounts(text: str) -> range:
    found = re.fullmatch(r"([0-9]{1,10})(?:-([0-9]{1,10}))?", text, re.ASCII)
    accounts = range(int(found[1]), int(found[2] or found[1]) + 1) if found else range(0)
    if not accounts or accounts[-1] >= HARDENED or len(accounts) > _COUNT_MAX:
        raise click.ClickException(f"--accounts takes a number, or up to {_COUNT_MAX} of them as in 1-20.")
    return accounts


def _passphrase(file: Path | None, *, confirm: bool = False, name: str = "Passphrase") -> str:
    if file is not None:
        try:
            return file.read_text("utf-8").rstrip("\r\n")
        except (OSError, UnicodeDecodeError) as error:
            reason = "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else error.strerror
            raise click.ClickException(f"{file} cannot be read: {reason}.") from error
    prompt = f"{name} (at least {PASSPHRASE_CHARS_MIN} characters)" if confirm else name
    answer: str = click.prompt(prompt, hide_input=True, confirmation_prompt=confirm)
    return answer
