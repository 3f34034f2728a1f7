"""Answers about payouts and coins."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from msgspec import Struct

from cambist.domain.money import format_units
from cambist.services.payouts.batch import Batch
from cambist.services.payouts.batch_rows import Rejected
from cambist.services.payouts.coin_settings import CoinSettings
from cambist.services.payouts.views import PayoutView
from cambist_web.schemas import Answer, MadeAnswer, PageAnswer


class PayoutMade(MadeAnswer, frozen=True, kw_only=True):
    """A payout. `idempotent` is there, and true, where it was made before."""

    payout: PayoutView


class PayoutAnswer(Answer, frozen=True, kw_only=True):
    """A payout."""

    payout: PayoutView


class PayoutList(PageAnswer, frozen=True, kw_only=True):
    """One page of payouts, newest first. `total` counts all pages."""

    payouts: Sequence[PayoutView]


class BatchView(Struct, frozen=True, kw_only=True, rename="camel"):
    """What became of a batch's rows. `totalAmount` is what was debited for the accepted ones."""

    batch_id: str
    chain: str
    token: str
    total_amount: str
    accepted_rows: int
    rejected_rows: int
    replayed_rows: int
    created_at: datetime


class BatchMade(MadeAnswer, frozen=True, kw_only=True):
    """A batch: payouts in the order of their rows, and the rows that were refused alone."""

    batch: BatchView
    payouts: Sequence[PayoutView]
    rejected: Sequence[Rejected]


class CoinView(Struct, frozen=True, kw_only=True, rename="camel"):
    """A coin, and what the merchant has decided about it."""

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    label: str
    enabled: bool
    auto_convert_enabled: bool
    auto_convert_dest_chain: str | None
    auto_convert_dest_token: str | None
    autopayout_policy: str
    autopayout_threshold: str | None
    autopayout_address: str | None


class CoinList(Answer, frozen=True, kw_only=True):
    """Every coin of the gateway."""

    coins: Sequence[CoinView]


class CoinAnswer(Answer, frozen=True, kw_only=True):
    """One coin."""

    coin: CoinView


def batch_view(batch: Batch) -> BatchView:
    return BatchView(
        batch_id=batch.batch_id,
        chain=batch.chain,
        token=batch.token,
        total_amount=format_units(batch.total, batch.decimals),
        accepted_rows=batch.accepted,
        rejected_rows=len(batch.rejected),
        replayed_rows=batch.replayed_rows,
        created_at=batch.created_at,
    )


def coin_view(coin: CoinSettings) -> CoinView:
    token, threshold = coin.token, coin.autopayout_threshold
    return CoinView(
        chain=coin.chain,
        token=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        label=token.label,
        enabled=coin.enabled,
        auto_convert_enabled=coin.auto_convert_enabled,
        auto_convert_dest_chain=coin.auto_convert_dest_chain,
        auto_convert_dest_token=coin.auto_convert_dest_token,
        autopayout_policy=coin.autopayout_policy,
        autopayout_threshold=None if threshold is None else format_units(threshold, token.decimals),
        autopayout_address=coin.autopayout_address,
    )
