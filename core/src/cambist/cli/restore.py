"""``cambist restore``: a new database from the seed, the recovery manifest and the chains."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click
from sqlalchemy.exc import SQLAlchemyError

from cambist.bootstrap import open_gateway
from cambist.ports import system_ids
from cambist.provision import provision
from cambist.registry import Registry, RegistryError
from cambist.services.recovery import restore as services
from cambist.services.recovery.reconcile import as_text
from cambist.services.recovery.restore import Added, Line, Manifest, RestoreError, Restorer, Summary
from cambist.services.recovery.restore.service import ACCOUNT_GAP, GAP
from cambist.settings import Settings, SettingsError
from cambist.signer import SignerUnavailableError
from cambist.signer.files import KeystoreError

from .opened import reason
from .options import Invocation, settings_options
from .terminal import echo

EXIT_DIFFERENCES = 1
HEIGHT = re.compile(r"([^=]{1,64})=([0-9]{1,15})", re.ASCII)


@click.command()
@settings_options
@click.argument(
    "path", metavar="MANIFEST", type=click.Path(path_type=Path, dir_okay=False, exists=True), required=False
)
@click.option("--accounts", type=click.IntRange(1, 100_000), help="Without a manifest: accounts 1 to this one.")
@click.option("--indexes", type=click.IntRange(0, 10_000_000), help="Without a manifest: addresses of each account.")
@click.option("--first-height", "heights", multiple=True, metavar="CHAIN=N", help="Without a manifest, per chain.")
@click.option("--gap", type=click.IntRange(0, 1_000_000), default=GAP, help=f"Addresses beyond those [default: {GAP}].")
@click.option(
    "--account-gap", type=click.IntRange(0, 100_000), default=ACCOUNT_GAP,
    help=f"Accounts beyond those that no new merchant gets [default: {ACCOUNT_GAP}].",
)  # fmt: skip
@click.option(
    "--backup", is_flag=True, help="The database is a backup: add what MANIFEST knows beyond it, and scan nothing."
)
def restore(invocation: Invocation, gap: int, account_gap: int, *, backup: bool, **wanted: Any) -> None:  # noqa: ANN401  checked by click
    """Rebuild addresses, deposits and balances in an empty database that 'cambist migrate' has made.

    Nothing else may use the database meanwhile. When it stops, the same command goes on from there.
    """
    if backup and wanted["path"] is None:
        raise click.UsageError("--backup takes a MANIFEST, which knows what was handed out since.")
    settings = _settings(invocation)
    manifest, accounts = partial(_manifest, **wanted), _accounts(wanted["path"])
    try:
        made = asyncio.run(_restore(settings, manifest, accounts, (gap, account_gap), backup=backup))
    except (RestoreError, KeystoreError, SignerUnavailableError) as error:
        raise click.ClickException(str(error)) from error
    except RegistryError as error:
        raise SettingsError(str(error)) from error
    except (SQLAlchemyError, OSError) as error:
        raise click.ClickException(f"The database cannot be used: {reason(error)}.") from error
    if isinstance(made, Added):
        echo(f"Added: {made.merchants} merchants and {made.addresses} addresses that the backup does not know.")
        if made.suspended:
            echo(f"{made.suspended} merchants were suspended since, and are again.")
        echo(f"{made.accounts} accounts have their addresses. Start the workers: they read the chains on from there.")
        return
    _print(made)
    if not made.agrees:
        raise SystemExit(EXIT_DIFFERENCES)


def _settings(invocation: Invocation) -> Settings:
    settings = invocation.settings()
    remote = settings.signer_socket is not None
    settings = invocation.settings(passphrase=not remote)
    if settings.database.url is None or settings.redis.url is None:
        raise SettingsError("'cambist restore' needs database.url and redis.url, as a worker does.")
    if not remote and settings.keys.keystore is None:
        raise SettingsError("keys.keystore must be set: 'cambist keys init --import' makes one from the words.")
    os.environ.update(provision(settings, system_ids(), keystore=False))
    return invocation.settings(passphrase=not remote)


def _accounts(manifest: Path | None) -> Iterable[Line]:
    """Return what stands beside the manifest; nothing where it stands alone, which is told."""
    if manifest is None:
        return ()
    path = services.accounts_path(manifest)
    if path.exists():
        return services.read_accounts(path)
    echo(f"There is no {path}: addresses of accounts come back, and whose they are is not known.")
    return ()


async def _restore(
    settings: Settings,
    manifest: Callable[[Registry], Manifest],
    accounts: Iterable[Line],
    gaps: tuple[int, int],
    *,
    backup: bool,
) -> Summary | Added:
    async with open_gateway(settings, role="worker") as gateway:
        wanted = manifest(gateway.registry)
        if gateway.signer is None:
            raise SettingsError("Nobody signs here: set keys.keystore and keys.passphrase.")
        restorer = Restorer(
            db=gateway.db,
            registry=gateway.registry,
            chains=gateway.chains,
            signer=gateway.signer,
            box=gateway.secrets,
            keys=gateway.keys,
            clock=gateway.clock,
            ids=gateway.ids,
            gap=gaps[0],
            account_gap=gaps[1],
        )
        return await (restorer.add(wanted, accounts) if backup else restorer.restore(wanted, echo, accounts))


def _manifest(
    registry: Registry, *, path: Path | None, accounts: int | None, indexes: int | None, heights: Sequence[str]
) -> Manifest:
    if path is not None:
        if accounts is not None or indexes is not None or heights:
            raise click.UsageError("A manifest says which accounts, indexes and heights there are.")
        return services.read_manifest(path)
    if accounts is None or indexes is None or not heights:
        raise click.UsageError("Name a MANIFEST; or else --accounts, --indexes, and a --first-height for every chain.")
    return services.by_hand(registry, range(1, accounts + 1), indexes, dict(map(_height, heights)))


def _height(text: str) -> tuple[str, int]:
    found = HEIGHT.fullmatch(text)
    if found is None:
        raise click.BadParameter(f"{text!r} is not CHAIN=N, such as ethereum=19000000.", param_hint="--first-height")
    return found[1], int(found[2])


def _print(summary: Summary) -> None:
    found = f"{summary.addresses} addresses, {summary.accounts} accounts, {summary.deposits} deposits"
    echo(f"\nRestored: {summary.merchants} merchants, {found}.")
    for report in summary.reports:
        for line in as_text(report):
            echo(line)
    for merchant_id in summary.further:
        echo(
            f"{merchant_id}: so late an address was paid that there may be more behind all that were looked at."
            " To be sure, restore into another new database with a larger --gap."
        )
    if summary.skipped:
        echo(f"Not read, because nothing says from where on: {', '.join(summary.skipped)}.")
    echo("Merchants sign in again once you have issued them a password reset; they make projects and keys anew.")
