"""Answers about what a merchant has."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from cambist.domain.money import format_units
from cambist.services.accounting.tokens import TokenBalance
from cambist_web.schemas import Answer
from cambist_web.usage.schemas import SystemCredit


class BalanceView(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What there is of one token. `receivable` is there, and negative, where a reorg took back what was spent."""

    chain: str
    token: str
    contract_address: str | None
    decimals: int
    available: str
    pending: str
    held: str
    receivable: str | None = None


class Wallet(Answer, frozen=True, kw_only=True):
    """Every token that the merchant ever had, and the usage credits that are left."""

    mode: str
    balances: Sequence[BalanceView]
    system_credit: SystemCredit


class SingleBalance(Answer, frozen=True, kw_only=True):
    """One token."""

    mode: str
    balance: BalanceView


def balance_view(found: TokenBalance) -> BalanceView:
    token, balance = found.token, found.balance
    return BalanceView(
        chain=found.chain,
        token=token.symbol,
        contract_address=token.contract,
        decimals=token.decimals,
        available=format_units(balance.available, token.decimals),
        pending=format_units(balance.pending, token.decimals),
        held=format_units(balance.held, token.decimals),
        receivable=format_units(balance.receivable, token.decimals) if balance.receivable else None,
    )
