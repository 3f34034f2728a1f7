"""``cambist signer``: the signer as a process of its own, and what it asks a person."""

from __future__ import annotations

import asyncio
import json
import os
import re
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
from cambist.signer.files import KeystoreError
from cambist.signer.server import SignerServer
from cambist.signer.startup import open_local_signer
from cambist.signer.store import Asked, Book, Store, StoreError

from .options import Invocation, settings_options
from .processes import stop_with_the_supervisor
from .terminal import echo

_WORD = re.compile(r"[A-Za-z0-9_:.-]+")

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
    with _book(invocation) as book:
        found = book.asked(reference)
    if not found:
        raise click.ClickException(f"Nothing waits for approval under {reference!r}.")
    agreed = []
    for asked in found:
        echo(_line(asked))
        if click.confirm("Sign this?"):
            agreed.append(asked.pk)
    with _book(invocation) as book:
        for pk in agreed:
            book.approve(pk)
    echo(f"{len(agreed)} of {len(found)} approved.")


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
    since = datetime.fromtimestamp(asked.asked_at, UTC).isoformat(timespec="seconds")
    by = _word(asked.asked_by) if asked.asked_by else "nobody that is known"
    what = f"{asked.text}  to {asked.to_address}  on {asked.to_chain or asked.chain}"
    return f"{_word(asked.reference)}  {what}  ({_word(asked.purpose)} by {by}, asked {since})"


def _word(text: str) -> str:
    """Quote what is more than a word, so that no reference looks like another amount or address."""
    return text if _WORD.fullmatch(text) else json.dumps(text)
