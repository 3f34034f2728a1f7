"""What there is now: a merchant's balances in fiat; and what the gateway holds of everybody's on each chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import transposed
from cambist.domain.money import format_rate, format_units, value_of
from cambist.domain.prices import Rate
from cambist.registry import Registry
from cambist.services.accounting import tokens
from cambist.services.accounting.ledger import asset_key, chain_and_contract

from .worth import fiat_text, latest_prices


class Worth(Struct, frozen=True, kw_only=True, rename="camel"):
    """What some coins are worth together. `unpriced` counts those of which nobody knows a price now."""

    fiat: str
    unpriced: int


class CoinBalance(Struct, frozen=True, kw_only=True, rename="camel"):
    """What a merchant has of one coin. `fiat` is what all of it is worth at `price`.

    Both are null where no price is known, and so are `priceSource` and `pricedAt`: who said so, and as of when.
    """

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    available: str
    pending: str
    held: str
    receivable: str
    price: str | None
    price_source: str | None
    priced_at: datetime | None
    fiat: str | None


class Balances(Worth, frozen=True, kw_only=True, rename="camel"):
    """A merchant's balances, and what they are worth together."""

    coins: Sequence[CoinBalance]


class HeldCoin(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the gateway holds of one coin, by whose it is, and by where it is.

    `merchants` is theirs: what they can spend, what is on its way out, and what is held. `receivable` is what they owe.
    """

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    merchants: str
    receivable: str
    on_addresses: str
    in_wallets: str
    between_chains: str
    gas: str
    price: str | None
    fiat: str | None


class Held(Worth, frozen=True, kw_only=True, rename="camel"):
    """What merchants have in the gateway, worth together `fiat`; gas stations are not in that."""

    coins: Sequence[HeldCoin]


async def balances_of(  # noqa: PLR0913, PLR0917  whose, and in what
    conn: AsyncConnection, registry: Registry, merchant_pk: int, mode: str, currency: str, now: datetime
) -> Balances:
    """Return what a merchant has of every coin that it ever had."""
    found = await tokens.balances(conn, registry, merchant_pk, mode)
    prices = await latest_prices(conn, [one.token.symbol for one in found], currency, now)
    coins, worths = [], list[Decimal | None]()
    for one in found:
        token, balance = one.token, one.balance
        total = balance.available + balance.pending + balance.held + balance.receivable
        rate = prices.get(token.symbol.upper())
        value = _value(total, token.decimals, rate)
        worths.append(value)
        coins.append(
            CoinBalance(
                chain=one.chain,
                token=token.symbol,
                contract_address=token.contract,
                decimals=token.decimals,
                available=format_units(balance.available, token.decimals),
                pending=format_units(balance.pending, token.decimals),
                held=format_units(balance.held, token.decimals),
                receivable=format_units(balance.receivable, token.decimals),
                price=None if rate is None else format_rate(rate.value),
                price_source=None if rate is None else rate.source,
                priced_at=None if rate is None else rate.observed_at,
                fiat=None if value is None else fiat_text([value], currency),
            )
        )
    fiat, unpriced = _together(worths, currency)
    return Balances(coins=coins, fiat=fiat, unpriced=unpriced)


# Balances of accounts that are in debit are below zero.
_HELD = """
SELECT asset,
    coalesce(sum(balance) FILTER (WHERE purpose IN ('available', 'pending', 'held')), 0) AS merchants,
    coalesce(sum(balance) FILTER (WHERE purpose = 'receivable'), 0) AS receivable,
    coalesce(-sum(balance) FILTER (WHERE purpose IN ('custody_deposits', 'float_deposits')), 0) AS on_addresses,
    coalesce(-sum(balance) FILTER (WHERE purpose IN ('custody_wallet', 'float_wallet')), 0) AS in_wallets,
    coalesce(-sum(balance) FILTER (WHERE purpose = 'between_chains'), 0) AS between_chains,
    coalesce(-sum(balance) FILTER (WHERE purpose IN ('custody_gas', 'custody_staked')), 0) AS gas
FROM ledger_accounts WHERE mode = $1 AND balance <> 0 AND asset <> 'cpt' GROUP BY asset ORDER BY asset
"""
_REMEMBERED = """
SELECT w.asset, t.token, t.decimals FROM unnest($1::text[], $2::text[], $3::text[]) AS w (asset, chain, contract)
CROSS JOIN LATERAL (
    SELECT symbol AS token, decimals FROM chain_tokens
    WHERE chain = w.chain AND contract = w.contract AND symbol IS NOT NULL AND decimals IS NOT NULL
    UNION ALL SELECT token, decimals FROM deposits WHERE chain = w.chain AND contract = w.contract LIMIT 1
) AS t
"""


class _Known(Struct, frozen=True):
    symbol: str
    decimals: int


async def held_by_all(conn: AsyncConnection, registry: Registry, mode: str, currency: str, now: datetime) -> Held:
    """Return what the gateway holds on each chain, as the ledger says."""
    rows = (await conn.exec_driver_sql(_HELD, (mode,))).all()
    known = await _names(conn, registry, [row.asset for row in rows])
    prices = await latest_prices(conn, [one.symbol for one in known.values()], currency, now)
    coins, worths = [], list[Decimal | None]()
    for row in rows:
        chain, contract = chain_and_contract(row.asset)
        # A token that nobody remembers is told in its smallest unit, rather than not at all.
        token = known.get(row.asset, _Known(contract or "native", 0))
        rate = prices.get(token.symbol.upper())
        value = _value(int(row.merchants), token.decimals, rate)
        worths.append(value)
        units = {
            name: format_units(int(getattr(row, name)), token.decimals)
            for name in ("merchants", "receivable", "on_addresses", "in_wallets", "between_chains", "gas")
        }
        coins.append(
            HeldCoin(
                chain=chain,
                token=token.symbol,
                contract_address=contract,
                decimals=token.decimals,
                price=None if rate is None else format_rate(rate.value),
                fiat=None if value is None else fiat_text([value], currency),
                **units,
            )
        )
    fiat, unpriced = _together(worths, currency)
    return Held(coins=coins, fiat=fiat, unpriced=unpriced)


async def _names(conn: AsyncConnection, registry: Registry, assets: Sequence[str]) -> Mapping[str, _Known]:
    """Return symbol and decimals by asset; of tokens that nobody configures any more as deposits know them."""
    found = {
        asset_key(chain.id, token.contract): _Known(token.symbol, token.decimals)
        for chain in registry.chains.values()
        for token in chain.tokens
    }
    missing = [asset for asset in assets if asset not in found]
    if missing:
        named = [(asset, *chain_and_contract(asset)) for asset in missing]
        rows = await conn.exec_driver_sql(_REMEMBERED, tuple(transposed(named)))
        found |= {row.asset: _Known(row.token, row.decimals) for row in rows}
    return found


def _value(units: int, decimals: int, rate: Rate | None) -> Decimal | None:
    return None if rate is None else value_of(units, decimals, rate.value)


def _together(worths: Sequence[Decimal | None], currency: str) -> tuple[str, int]:
    known = [value for value in worths if value is not None]
    return fiat_text(known, currency), len(worths) - len(known)
