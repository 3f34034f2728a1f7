"""Bodies and answers about stakes."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from cambist.domain.money import format_units
from cambist.registry import Registry
from cambist.services.pricing.quotes import AmountText, Name
from cambist.services.sending.gas.stakes import StakeAction, StakeRequest
from cambist_web.schemas import Answer, Body


class StakeBody(Body, frozen=True, kw_only=True):
    """A change of the gas station's stake. `withdraw` takes back all that can be, and needs no `amount`."""

    chain: Name
    action: StakeAction
    amount: AmountText | None = None


class StakeView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A change that was asked for. `status` is `waiting` (`waitsFor` says why), `sending`, `done` or `failed`."""

    stake_id: str
    chain: str
    action: StakeAction
    token: str
    amount: str
    status: str
    waits_for: str | None
    tx_hash: str | None
    created_at: datetime


class StakeAsked(Answer, frozen=True, kw_only=True):
    """The change that was asked for."""

    stake: StakeView


class StakeList(Answer, frozen=True, kw_only=True):
    """The latest changes, newest first."""

    stakes: Sequence[StakeView]


def stake_view(registry: Registry, request: StakeRequest) -> StakeView:
    chain = registry.chains.get(request.chain)
    symbol, decimals = ("", 0) if chain is None else (chain.native.symbol, chain.native.decimals)
    return StakeView(
        stake_id=request.reference,
        chain=request.chain,
        action=request.action,
        token=symbol,
        amount=format_units(request.units, decimals),
        status=request.state,
        waits_for=request.reason,
        tx_hash=request.tx_id,
        created_at=request.created_at,
    )
