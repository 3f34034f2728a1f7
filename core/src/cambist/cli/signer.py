"""``cambist signer``: the signer as a process of its own, and what it asks a person."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import click
import structlog

from cambist.ports import SystemClock, system_ids
from cambist.provision import provision
from cambist.registry import Registry, RegistryError
from cambist.settings import Settings, SettingsError
from cambist.signer import SignerUnavailableError, answers
from cambist.signer.files import KeystoreError
from cambist.signer.reporting import word
from cambist.signer.reports import Verdict
from cambist.signer.server import SignerServer
from cambist.signer.startup import open_local_signer
from cambist.signer.store import Asked, Book, Store, StoreError

from .options import Invocation, settings_options
from .processes import stop_with_the_supervisor
from .terminal import echo, forget_typed

SECRET_FILE_BYTES_MAX = 4_096

log = structlog.get_logger(__name__)


@click.group()
def signer() -> None:
    """Sign in a process of its own, and agree to what waits for a person."""


@signer.command()
@settings_options
def run(invocation: Invocation) -> None:
    """Open the keystore and sign for the workers, over signer.socket. Needs neither database nor Redis."""
    stop_with_the_supervisor()
    settings = invocation.settings(passphrase=True, signer_only=True)
    path = settings.signer_socket
    if path is None:
        raise SettingsError("signer.socket must be set: it is where the workers find the signer.")
    os.environ.update(provision(settings, system_ids(), only_keystore=True))
    settings = invocation.settings(passphrase=True, signer_only=True)
    try:
        asyncio.run(_serve(settings, path))
    except (RegistryError, KeystoreError) as error:
        raise SettingsError(str(error)) from error
    except SignerUnavailableError as error:  # which may pass with time: a supervisor shall try again
        raise click.ClickException(str(error)) from error


async def _serve(settings: Settings, path: Path) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with (
        open_local_signer(settings, Registry(settings.plugins), SystemClock()) as local,
        SignerServer(local).listen(path, settings.signer.socket_group),
    ):
        log.info("signer_ready", socket=str(path))
        await stop.wait()
    log.info("signer_stopped")


@signer.command()
@settings_options
def pending(invocation: Invocation) -> None:
    """List what waits for a person's approval."""
    with _book(invocation) as book:
        found = book.asked()
    for asked in found:
        echo(_line(asked))
    if not found:
        echo("Nothing waits for approval.")


@signer.command()
@click.argument("reference")
@settings_options
def approve(invocation: Invocation, reference: str) -> None:
    """Agree to what waits under REFERENCE: to this amount for this address, once."""
    reference = reference.encode(errors="replace").decode()  # an argument can be bytes that are no text
    with _book(invocation) as book:
        found = book.asked(reference)
    if not found:
        raise click.ClickException(f"Nothing waits for approval under {reference!r}.")
    agreed = []
    for asked in found:
        echo(_line(asked))
        forget_typed()
        if click.confirm("Sign this?"):
            agreed.append(asked.pk)
    with _book(invocation) as book:
        for pk in agreed:
            book.approve(pk)
    echo(f"{len(agreed)} of {len(found)} approved.")


@signer.command()
@settings_options
def clock(invocation: Invocation) -> None:
    """Take the store back to this machine's clock, after one that was far ahead.

    Nothing that was signed is forgotten.
    """
    settings = invocation.settings(signer_only=True)
    try:
        with closing(Store(settings.signer_store)) as store:
            latest, now = store.latest(), int(SystemClock().now().timestamp())
            if latest <= now:
                echo(f"Nothing is wrong: the store has seen {_moment(latest)}, and this machine's clock is not behind.")
                return
            echo(f"The store has seen      {_moment(latest)}")
            echo(f"This machine's clock is {_moment(now)}")
            echo(
                "What counts ahead of it counts for an hour from now on. Addresses that are known since then are fresh."
            )
            forget_typed()
            if not click.confirm("Is this machine's clock right, and shall the store go on from it?"):
                raise click.ClickException("Nothing was changed.")
            store.take_back(int(SystemClock().now().timestamp()))
    except StoreError as error:
        raise click.ClickException(str(error)) from error
    log.warning("signer_store_taken_back", was=_moment(latest))
    echo("The store goes on from this machine's clock.")


@signer.command()
@settings_options
@click.option("--renew", is_flag=True, help="Replace the secret that there is.")
def enrol(invocation: Invocation, *, renew: bool) -> None:
    """Make a secret for answering over the gateway, and show it once: keep it on a device of your own."""
    settings = invocation.settings(signer_only=True)
    try:
        secret = answers.enrol(settings.signer_store, system_ids().random_bytes, renew=renew)
    except (KeystoreError, OSError) as error:
        raise click.ClickException(str(error)) from error
    echo(secret)
    echo("Write it into a file of your own device, not of this gateway's machines; 'cambist signer code' reads it.")
    echo("Set signer.approvals_by_api = true in the signer's file, and start the signer again.")


@signer.command()
@click.argument("secret_file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
def code(secret_file: Path) -> None:
    """Make a code for one question, on your own device: nothing is asked of any gateway."""
    try:
        with secret_file.open("rb") as stream:
            typed = stream.read(SECRET_FILE_BYTES_MAX)
    except OSError as error:
        raise click.ClickException(f"{secret_file} cannot be read: {error.strerror}.") from error
    key = answers.parse(typed.decode("utf-8", "replace"))
    if key is None:
        raise click.ClickException(f"{secret_file} holds no secret of 'cambist signer enrol'.")
    question = click.prompt("The whole question, as it is shown")
    echo("")
    echo(question)
    forget_typed()
    verdict: Verdict = click.prompt("You say", type=click.Choice(["approve", "deny"]))
    made = answers.code_for(key, verdict, question, int(SystemClock().now().timestamp()))
    echo(f"{made[:4]} {made[4:]}  to {verdict} this alone, for some minutes")


@contextmanager
def _book(invocation: Invocation) -> Iterator[Book]:
    settings = invocation.settings(signer_only=True)
    try:
        with closing(Store(settings.signer_store)) as store, store.book(int(SystemClock().now().timestamp())) as book:
            yield book
    except StoreError as error:
        raise click.ClickException(str(error)) from error


def _line(asked: Asked) -> str:
    """Return what is asked. Amount and address are the signer's own reading; the rest the gateway's database said."""
    since = _moment(asked.asked_at)
    by = word(asked.asked_by) if asked.asked_by else "nobody that is known"
    what = f"{asked.text}  to {asked.to_address}  on {asked.to_chain or asked.chain}"
    return f"{word(asked.reference)}  {what}  ({word(asked.purpose)} by {by}, asked {since})"


def _moment(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
