"""What a merchant has of each token: balances, told in the tokens of the enabled plugins."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import Deposit
from cambist.plugin import ChainInfo, Token
from cambist.registry import Registry

from . import ledger


class TokenBalance(Struct, frozen=True, kw_only=True):
    """What a merchant has of one token. ``symbol`` and ``decimals`` are the registry's."""

    chain: str
    token: Token
    balance: ledger.Balance


async def ever_had(conn: AsyncConnection, registry: Registry, merchant_pk: int, mode: str) -> Sequence[TokenBalance]:
    """Return what a merchant has of every token that it ever had."""
    found = []
    for balance in await ledger.balances(conn, merchant_pk, mode):
        chain_id, contract = ledger.chain_and_contract(balance.asset)
        known = registry.chains[chain_id].tokens if chain_id in registry.chains else ()
        token = next((one for one in known if one.contract == contract), None)
        if token is None:
            token = await _remembered(conn, merchant_pk, chain_id, contract)
        if token is not None:
            found.append(TokenBalance(chain=chain_id, token=token, balance=balance))
    return found


async def balances(conn: AsyncConnection, registry: Registry, merchant_pk: int, mode: str) -> Sequence[TokenBalance]:
    """Return what a merchant has of every token that it ever had, but no empty balance of one that another replaced.

    Its symbol would be there twice, and can be asked for only as what it stands for now. What should be left of the
    replaced one is told all the same.
    """
    found = await ever_had(conn, registry, merchant_pk, mode)
    return [one for one in found if not (_is_replaced(registry, one) and one.balance.is_empty)]


def _is_replaced(registry: Registry, of: TokenBalance) -> bool:
    """Whether the token's symbol stands for another contract by now."""
    chain = registry.chains.get(of.chain)
    named = None if chain is None else chain.token(of.token.symbol)
    return named is not None and named.contract != of.token.contract


async def balance(conn: AsyncConnection, merchant_pk: int, mode: str, chain: ChainInfo, token: Token) -> TokenBalance:
    """Return what a merchant has of one token: zeros where it never had any."""
    asset = ledger.asset_key(chain.id, token.contract)
    found = await ledger.balances(conn, merchant_pk, mode, asset)
    return TokenBalance(chain=chain.id, token=token, balance=found[0] if found else ledger.Balance(asset=asset))


async def _remembered(conn: AsyncConnection, merchant_pk: int, chain_id: str, contract: str | None) -> Token | None:
    """Return a token that the operator has taken out of the registry, as its deposits know it.

    None where there were none: then the merchant never had it, and its accounts are empty.
    """
    newest = (
        select(Deposit.token, Deposit.decimals)
        .where(Deposit.merchant_pk == merchant_pk, Deposit.chain == chain_id, Deposit.contract == contract)
        .order_by(Deposit.id.desc())
        .limit(1)
    )
    row = (await conn.execute(newest)).one_or_none()
    return None if row is None else Token(symbol=row.token, contract=contract, decimals=row.decimals, label=row.token)
