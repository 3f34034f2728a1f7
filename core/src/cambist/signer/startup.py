"""Opens the signer that the settings ask for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cambist.ports import Clock
from cambist.registry import Registry
from cambist.settings import Settings, SettingsError

from .answers import read_key
from .exchanges import ExchangeReader
from .files import KeystoreError
from .keystore import Keystore, open_keystore
from .local import LocalSigner
from .protocol import Signer, SignerUnavailableError
from .reading import Reader
from .remote import RemoteSigner
from .rules import check_caps, load_rules
from .store import FILE, Store, StoreError, StoreUnavailableError
from .store_schema import check


@asynccontextmanager
async def open_signer(
    settings: Settings, registry: Registry, clock: Clock, keystore: Keystore | None = None
) -> AsyncIterator[Signer]:
    """Yield the signer behind the configured socket, or one in this process, where no socket is configured.

    Raises SettingsError and KeystoreError; SignerUnavailableError for a store that may be usable the next time.
    """
    if keystore is None and settings.signer_socket is not None:
        remote = RemoteSigner(settings.signer_socket, group=settings.signer.socket_group)
        try:
            yield remote
        finally:
            await remote.aclose()
        return
    async with open_local_signer(settings, registry, clock, keystore) as local:
        yield local


@asynccontextmanager
async def open_local_signer(
    settings: Settings, registry: Registry, clock: Clock, keystore: Keystore | None = None
) -> AsyncIterator[LocalSigner]:
    """Yield a signer in this process, with the configured keystore unless another is given.

    Raises SettingsError and KeystoreError; SignerUnavailableError for a store that may be usable the next time.
    """
    rules = load_rules(settings, registry.chains, registry.families)
    if settings.production:
        check_caps(rules, registry.chains)
    key = answers_key(settings)
    keystore = keystore or await _configured_keystore(settings)
    try:
        store = Store(settings.signer_store)
    except StoreUnavailableError as error:
        raise SignerUnavailableError(str(error)) from error
    except StoreError as error:
        raise SettingsError(str(error)) from error
    # What is added while the gateway runs comes from the database, and is no word for a signer.
    chains = registry.file_chains
    exchanges = ExchangeReader(registry.call_readers(), chains, rules.floor_rates)
    reader = Reader(keystore, registry.families, chains, exchanges)
    signer = LocalSigner(keystore, reader, rules=rules, store=store, clock=clock, answers_key=key)
    try:
        yield signer
    finally:
        await signer.aclose()


async def _configured_keystore(settings: Settings) -> Keystore:
    keys = settings.keys
    if keys.keystore is None or keys.passphrase is None:
        missing = "keys.keystore" if keys.keystore is None else "keys.passphrase"
        raise SettingsError(f"{missing} must be set: it is what addresses come from and what signs.")
    return await asyncio.to_thread(open_keystore, keys.keystore, keys.passphrase)


def answers_key(settings: Settings) -> bytes | None:
    """Return what codes are made of, where the operator's file lets questions be answered over the gateway.

    Raises SettingsError.
    """
    if not settings.signer.approvals_by_api:
        return None
    try:
        key = read_key(settings.signer_store)
    except KeystoreError as error:
        raise SettingsError(str(error)) from error
    if key is None:
        raise SettingsError("signer.approvals_by_api is on, and nobody has a secret: run 'cambist signer enrol' first.")
    return key


def signer_problems(settings: Settings) -> list[str]:
    """Say what of its files, besides the keystore, keeps a signer in this process from starting."""
    found = []
    try:
        check(settings.signer_store / FILE)
    except StoreError as error:
        found.append(str(error))
    try:
        answers_key(settings)
    except SettingsError as error:
        found.append(str(error))
    return found
