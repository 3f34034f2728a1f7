"""Makes accounts, and gives them addresses: one in each family of chains, which serves all chains of the family.

An index is leased before anything is locked, as for payments. What concurrent twins lease in vain is a gap, like that
of a crash: whose address it becomes, the unique constraints decide, and no index is ever handed out twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct
from sqlalchemy import ColumnElement, and_
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.models import Account
from cambist.db.structs import AnyRow
from cambist.domain.branches import PERMANENT_BRANCH
from cambist.domain.usage import Operation, Weights
from cambist.plugin import ChainInfo
from cambist.ports import Clock, Ids
from cambist.registry import Registry
from cambist.services.actor import Actor
from cambist.services.addresses.account_keys import IndexLeaser, LeasedIndex, derived
from cambist.services.errors import UnavailableError, project_inactive
from cambist.services.platform import PlatformSettingsCache
from cambist.services.pricing.quotes import WORDING
from cambist.services.supported import find_chain

from .read import not_found
from .requests import AddChains, CreateAccount, check
from .views import ACCOUNTS, AccountView, Presenter, proven


class AccountContext(Struct, frozen=True, kw_only=True):
    """What making accounts needs, for the life of the process."""

    db: Database
    registry: Registry
    leaser: IndexLeaser
    platform: PlatformSettingsCache
    clock: Clock
    ids: Ids
    presenter: Presenter


class CreatedAccount(Struct, frozen=True):
    """An account, and whether it was there before."""

    account: AccountView
    existed: bool


class _NewAddress(Struct, frozen=True, kw_only=True):
    """An address that was derived for an account, and will be stored unless the account has one by then."""

    address: str
    leased: LeasedIndex


async def create_account(context: AccountContext, actor: Actor, request: CreateAccount) -> CreatedAccount:
    """Make the account, or return the one that the end user has, with the chains added that it lacked.

    Raises InvalidError for an unknown chain, UnavailableError for one that takes no payments now.
    """
    metadata = check(request)
    own = and_(Account.project_pk == actor.project_pk, Account.external_id == request.external_id)
    async with context.db.autocommit() as conn:
        found = (await conn.execute(ACCOUNTS.where(own))).one_or_none()
    lacking = _lacking(context, actor, request.chains, found)
    if found is not None and not lacking:
        return CreatedAccount(context.presenter.view(found), existed=True)
    derived = await _derive(context, actor, lacking, found)
    # Not while a connection is held: it may need one of its own.
    weights = (await context.platform.get()).cpt.weights
    async with context.db.transaction() as conn:
        new = await conn.exec_driver_sql(
            _INSERT,
            (
                actor.project_pk,
                actor.mode,
                context.ids.new("acc"),
                context.ids.new("pub"),
                request.external_id,
                metadata,
                context.clock.now(),
            ),
        )
        account = await _give_chains(conn, context, actor, own, lacking, derived, weights)
    if account is None:
        raise project_inactive()
    return CreatedAccount(account, existed=not new.rowcount)


async def add_chains(context: AccountContext, actor: Actor, account_id: str, request: AddChains) -> AccountView:
    """Have an account take deposits on these chains, too. Raises as ``create_account``, and NotFoundError."""
    own = and_(Account.project_pk == actor.project_pk, Account.account_id == account_id)
    async with context.db.autocommit() as conn:
        found = (await conn.execute(ACCOUNTS.where(own))).one_or_none()
    if found is None:
        raise not_found()
    lacking = _lacking(context, actor, request.chains, found)
    if not lacking:
        return context.presenter.view(found)
    derived = await _derive(context, actor, lacking, found)
    weights = (await context.platform.get()).cpt.weights
    async with context.db.transaction() as conn:
        account = await _give_chains(conn, context, actor, own, lacking, derived, weights)
    if account is None:
        raise not_found()
    return account


def _lacking(context: AccountContext, actor: Actor, wanted: Sequence[str], found: AnyRow | None) -> list[ChainInfo]:
    """Return the chains that the account does not have yet. What it has does not depend on what there is now."""
    present = set() if found is None else {one.chain for one in context.presenter.view(found).addresses}
    lacking = {}
    for number, chain_id in enumerate(wanted):
        if chain_id in present:
            continue
        chain = find_chain(context.registry.chains, chain_id, f"chains[{number}]", WORDING)
        if actor.mode == "live" and chain.availability != "live":
            raise UnavailableError("CHAIN_UNAVAILABLE", f"Payments on {chain.name} are not available right now.")
        lacking[chain.id] = chain
    return list(lacking.values())


async def _derive(
    context: AccountContext, actor: Actor, chains: Iterable[ChainInfo], found: AnyRow | None
) -> Mapping[str, _NewAddress]:
    """Return an address for each family in which the account has none, with an index that nobody had before."""
    has = () if found is None else {one.chain for one in context.presenter.view(found).addresses}
    families = {context.registry.chains[chain].family for chain in has if chain in context.registry.chains}
    made = {}
    for name in sorted({chain.family for chain in chains} - families):
        family = context.registry.families[name]
        leased = await context.leaser.lease(actor.merchant_pk, actor.mode, family.coin_type)
        address = derived(family, leased.xpub, change=PERMANENT_BRANCH, index=leased.index)
        made[name] = _NewAddress(address=address, leased=leased)
    return made


async def _give_chains(  # noqa: PLR0913, PLR0917  whose, and what
    conn: AsyncConnection,
    context: AccountContext,
    actor: Actor,
    own: ColumnElement[bool],
    chains: Sequence[ChainInfo],
    derived: Mapping[str, _NewAddress],
    weights: Weights,
) -> AccountView | None:
    """Give the account the chains that it still lacks, and return it; None where there is no such account.

    Its row is locked, so that twins follow each other.
    """
    found = (await conn.execute(ACCOUNTS.where(own).with_for_update(key_share=True, of=Account))).one_or_none()
    if found is None:
        return None
    now = context.clock.now()
    has = {row.family: row for row in await conn.exec_driver_sql(_FAMILIES, (found.id,))}
    for family in sorted(derived.keys() - has.keys()):
        new = derived[family]
        values = (actor.mode, family, new.address, actor.merchant_pk, found.id, new.leased.account_index)
        has[family] = (await conn.exec_driver_sql(_ADDRESS, (*values, PERMANENT_BRANCH, new.leased.index))).one()
    added = 0
    for chain in sorted(chains, key=lambda one: one.id):
        home = has[chain.family]
        mac = context.presenter.macs.of_account(proven(found, chain.id, home.address))
        stored = await conn.exec_driver_sql(_CHAIN, (found.id, chain.id, home.id, mac, now))
        if stored.rowcount:
            await _meter(conn, actor, f"{found.account_id}:{chain.id}", chain.id, weights, now)
        added += stored.rowcount
    if added:
        await conn.exec_driver_sql("UPDATE accounts SET updated_at = $2 WHERE id = $1", (found.id, now))
    return context.presenter.view((await conn.execute(ACCOUNTS.where(own))).one())


async def _meter(  # noqa: PLR0913, PLR0917  the columns of a record
    conn: AsyncConnection, actor: Actor, reference: str, chain: str, weights: Weights, now: datetime
) -> None:
    """Count a permanent address on one chain as much as a payment; what comes to it costs nothing more."""
    weight = weights.of(Operation.PAYMENT, chain)
    if weight:
        await conn.exec_driver_sql(_METERED, (actor.merchant_pk, actor.mode, chain, reference, weight, now))


# The project's row says whether it is switched on at this moment. Where a twin is making the account, this waits until
# the twin has ended, and then makes nothing.
_INSERT = """
INSERT INTO accounts (
    project_pk, merchant_pk, mode, account_id, public_id, external_id, metadata, created_at, updated_at
)
SELECT id, merchant_pk, mode, $3, $4, $5, $6::json, $7, $7 FROM projects WHERE id = $1 AND mode = $2 AND is_active
ON CONFLICT (project_pk, external_id) DO NOTHING
"""
_FAMILIES = "SELECT id, family, address FROM addresses WHERE account_pk = $1"
_ADDRESS = """
INSERT INTO addresses (mode, family, address, purpose, merchant_pk, account_pk, account_index, change, address_index)
VALUES ($1, $2, $3, 'account', $4, $5, $6, $7, $8) RETURNING id, family, address
"""
_CHAIN = """
INSERT INTO account_chains (account_pk, chain, address_pk, address_mac, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING
"""
_METERED = """
INSERT INTO usage_records (merchant_pk, mode, operation, chain, reference, weight, created_at)
VALUES ($1, $2, 'payment', $3, $4, $5, $6)
"""
