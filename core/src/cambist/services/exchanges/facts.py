"""What the database knows that decides whether somebody may exchange now: read by one statement."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.engine import Database
from cambist.db.named import Statement
from cambist.services.accounting.usage import CREDITS
from cambist.services.addresses.wallets import OwnAddress, main_wallet
from cambist.services.idempotency import IS_KEY, Claim
from cambist.services.platform import PlatformSettings

from .context import ExchangeContext
from .owner import Owner
from .requests import Wish

IS_DISABLED = """EXISTS (SELECT FROM coin_settings WHERE merchant_pk = :merchant_pk AND mode = :mode AND NOT enabled
        AND chain = :{side}_chain AND symbol = :{side}_token)"""
"""Whether the merchant has disabled what is given, the ``side`` source, or what comes, the ``side`` dest."""
# The purpose of an address is a constant: only then is the small index of our own addresses found.
_READ = Statement(f"""
SELECT p.is_active, s.settings::text AS settings, md5(s.settings::text) AS settings_mark, {CREDITS} AS credits,
    w.id AS wallet_pk, w.address AS wallet, i.id AS into_pk, i.address AS into_wallet,
    (SELECT address FROM addresses WHERE mode = :mode AND family = :family AND purpose = 'gas' LIMIT 1) AS station,
    {IS_DISABLED.format(side="source")} AS is_source_disabled, {IS_DISABLED.format(side="dest")} AS is_dest_disabled,
    k.project_pk, k.request_hash, k.resource_id
FROM projects p
    LEFT JOIN platform_settings s ON true
    LEFT JOIN addresses w ON w.mode = :mode AND w.family = :family AND w.merchant_pk = :merchant_pk
        AND w.purpose = 'wallet'
    LEFT JOIN addresses i ON i.mode = :mode AND i.family = :dest_family AND i.merchant_pk = :merchant_pk
        AND i.purpose = 'wallet'
    LEFT JOIN (
        SELECT project_pk, request_hash, resource_id FROM idempotency_keys WHERE {IS_KEY}
    ) k ON true
WHERE p.id = :owner_pk
""")  # noqa: S608  constants


class Used(Struct, frozen=True):
    """The row of an idempotency key that was used before."""

    project_pk: int
    request_hash: bytes
    resource_id: str


class Facts(Struct, frozen=True, kw_only=True):
    """Whether the project is active, the operator's settings, the merchant's credits, and whose addresses are which.

    ``settings_mark`` is another one once the settings have changed. ``wallet`` and ``into`` are the main wallets of
    what is given and of what comes, None before they were first asked for. The merchant may have disabled either coin.
    """

    is_active: bool
    settings: PlatformSettings
    settings_mark: str | None
    credits: int
    wallet: OwnAddress | None
    into: OwnAddress | None
    station: str | None
    is_source_disabled: bool
    is_dest_disabled: bool
    used_key: Used | None

    @property
    def lacks_wallets(self) -> bool:
        return self.wallet is None or self.into is None


async def read_facts(source: Database | AsyncConnection, owner: Owner, wish: Wish, claim: Claim | None = None) -> Facts:
    """Read them on a connection, or as a transaction of their own."""
    values: dict[str, Any] = {
        "owner_pk": owner.project_pk,
        "merchant_pk": owner.merchant_pk,
        "mode": owner.mode,
        "family": wish.source.chain.family,
        "dest_family": wish.dest.chain.family,
        "source_chain": wish.source.chain.id,
        "source_token": wish.source.token.symbol,
        "dest_chain": wish.dest.chain.id,
        "dest_token": wish.dest.token.symbol,
        "operation": None if claim is None else claim.operation,
        "key": None if claim is None else claim.key,
    }
    if isinstance(source, Database):
        row: Any = await source.fetch_row(*_READ.bind(values))
    else:
        row = (await _READ.run(source, values)).mappings().one()
    return Facts(
        is_active=row["is_active"],
        settings=msgspec.json.decode(row["settings"] or "{}", type=PlatformSettings),
        settings_mark=row["settings_mark"],
        credits=int(row["credits"]),
        wallet=_own(row["wallet_pk"], row["wallet"]),
        into=_own(row["into_pk"], row["into_wallet"]),
        station=row["station"],
        is_source_disabled=row["is_source_disabled"],
        is_dest_disabled=row["is_dest_disabled"],
        used_key=None
        if row["resource_id"] is None
        else Used(row["project_pk"], row["request_hash"], row["resource_id"]),
    )


def _own(pk: int | None, address: str | None) -> OwnAddress | None:
    return None if pk is None or address is None else OwnAddress(pk, address)


async def with_wallets(
    conn: AsyncConnection, context: ExchangeContext, facts: Facts, owner: Owner, wish: Wish
) -> Facts:
    """Return the facts with both wallets, which come into being when they are first asked for.

    Raises KeysUnavailableError while the merchant has no key of a family's coin type yet.
    """
    families = context.registry.families
    wallet, into = [
        await main_wallet(conn, context.keys, families[asset.chain.family], owner.merchant_pk, owner.mode)
        for asset in (wish.source, wish.dest)
    ]
    return msgspec.structs.replace(facts, wallet=wallet, into=into)
