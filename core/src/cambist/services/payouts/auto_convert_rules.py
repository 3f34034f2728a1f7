"""A coin's rule to convert what comes in of it: which destinations can be meant, and the rules as they are stored."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlalchemy import ColumnElement, Select, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import CoinSettings
from cambist.db.structs import AnyRow, columns_of, to_struct
from cambist.plugin import ChainInfo, Token
from cambist.registry import Registry
from cambist.services.errors import ConflictError, InvalidError
from cambist.services.exchanges.requests import check_pair
from cambist.services.pricing.quotes import Asset
from cambist.services.supported import find_chain, find_token


class Rule(Struct, frozen=True, kw_only=True):
    """A rule that is switched on. ``project_pk`` is the project that did it, which is told of the exchanges.

    ``enabled`` is the coin's own. ``refusal`` is why nobody exchanged it the last time, None where somebody did;
    ``refusals`` how often in a row, for this reason.
    """

    merchant_pk: int
    mode: str
    chain: str
    symbol: str
    enabled: bool
    dest_chain: str
    dest_token: str
    project_pk: int
    refusal: str | None
    message: str | None
    refusals: int
    autopayout_policy: str
    autopayout_threshold: int | None


_coins = CoinSettings
COLUMNS = columns_of(
    Rule,
    CoinSettings,
    dest_chain=_coins.auto_convert_dest_chain,
    dest_token=_coins.auto_convert_dest_token,
    project_pk=_coins.auto_convert_project_pk,
    refusal=_coins.auto_convert_refusal,
    message=_coins.auto_convert_message,
    refusals=_coins.auto_convert_refusals,
)


def rule_of(row: AnyRow) -> Rule:
    return to_struct(Rule, row)


def of_merchant(merchant_pk: int, mode: str) -> Select[AnyRow]:
    """Return the statement for a merchant's rules in a mode."""
    return select(*COLUMNS).where(
        _coins.merchant_pk == merchant_pk, _coins.mode == mode, _coins.auto_convert_enabled.is_(True)
    )


def is_coin(rule: Rule) -> Sequence[ColumnElement[bool]]:
    """Return what finds the row of a rule, as long as it is switched on and says the same."""
    return (
        _coins.merchant_pk == rule.merchant_pk,
        _coins.mode == rule.mode,
        _coins.chain == rule.chain,
        _coins.symbol == rule.symbol,
        _coins.auto_convert_enabled.is_(True),
        _coins.auto_convert_dest_chain == rule.dest_chain,
        _coins.auto_convert_dest_token == rule.dest_token,
    )


def destination(registry: Registry, source: Asset, chain_id: str, symbol: str) -> Asset:
    """Return the coin to convert to. Raises InvalidError for one that is none, and where nothing can be exchanged."""
    chain = find_chain(registry.chains, chain_id, "autoConvertDestChain")
    dest = Asset(chain, find_token(chain, symbol, "autoConvertDestToken"))
    if dest == source:
        raise InvalidError.field("autoConvertDestToken", "is the coin itself")
    check_pair(source, dest)
    return dest


def named_destination(
    registry: Registry, chain: ChainInfo, token: Token, chain_id: str | None, symbol: str | None
) -> Asset | None:
    """Return the coin that both fields name together, None where neither does. Raises InvalidError."""
    if chain_id is None and symbol is None:
        return None
    if chain_id is None or symbol is None:
        missing = "autoConvertDestChain" if chain_id is None else "autoConvertDestToken"
        raise InvalidError.field(missing, "is required beside the other")
    return destination(registry, Asset(chain, token), chain_id, symbol)


async def refuse_circle(conn: AsyncConnection, merchant_pk: int, mode: str, source: Asset, dest: Asset) -> None:
    """Refuse a rule with which money would come round to the coin again, at a fee each time. Raises ConflictError.

    The caller lets a merchant's rules change one at a time.
    """
    rows = await conn.execute(of_merchant(merchant_pk, mode))
    then = {(rule.chain, rule.symbol): (rule.dest_chain, rule.dest_token) for rule in map(rule_of, rows)}
    start = (source.chain.id, source.token.symbol)
    then.pop(start, None)
    at: tuple[str, str] | None = (dest.chain.id, dest.token.symbol)
    way = [start]
    while at is not None and at != start:
        way.append(at)
        at = then.pop(at, None)
    if at == start:
        names = " to ".join(f"{symbol} on {chain}" for chain, symbol in [*way, start])
        raise ConflictError("AUTO_CONVERT_CIRCLE", f"With this, your coins would be converted in a circle: {names}.")
