"""Double entry: accounts, transactions and movements, whose invariants the database itself holds.

The triggers of the first migration keep balances equal to the movements, and both append-only.
"""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, ForeignKeyConstraint, Index, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, UnitsType, holds_one_of, partial_index


class LedgerAccount(Base):
    """Where units of one asset are, or whose they are.

    ``asset`` is ``<chain>/<contract or native>``. ``balance`` is credits less debits; accounts of what we hold
    on chains (``custody_...``) are debit-normal, so theirs is negative. A guarded account's balance never
    passes zero to the wrong side.
    """

    __tablename__ = "ledger_accounts"
    __table_args__ = (
        UniqueConstraint("mode", "merchant_pk", "asset", "purpose", postgresql_nulls_not_distinct=True),
        UniqueConstraint("id", "asset", "mode"),
        # Without the balance, which would be written into it at every movement.
        partial_index("ix_ledger_accounts_receivable", "mode", where="purpose = 'receivable'"),
        CheckConstraint(
            "NOT guarded OR CASE WHEN debit_normal THEN balance <= 0 ELSE balance >= 0 END", name="guarded_balance"
        ),
        holds_one_of("mode", "live", "sandbox"),
    )

    id: Mapped[PrimaryKey]
    mode: Mapped[str]
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    asset: Mapped[str]
    purpose: Mapped[str]
    guarded: Mapped[bool]
    debit_normal: Mapped[bool]
    balance: Mapped[int] = mapped_column(UnitsType, server_default="0")


class LedgerTransaction(Base):
    """Movements that happen together, once: ``reference`` says what caused them."""

    __tablename__ = "ledger_transactions"
    __table_args__ = (UniqueConstraint("kind", "reference"), UniqueConstraint("id", "mode"))

    id: Mapped[PrimaryKey]
    mode: Mapped[str]
    kind: Mapped[str]
    reference: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class LedgerMovement(Base):
    """Units that leave one account for another: a sum of zero by construction, within one asset and mode."""

    __tablename__ = "ledger_movements"
    __table_args__ = (
        CheckConstraint("units > 0", name="units_positive"),
        CheckConstraint("debit_account_pk <> credit_account_pk", name="two_accounts"),
        ForeignKeyConstraint(["transaction_pk", "mode"], ["ledger_transactions.id", "ledger_transactions.mode"]),
        ForeignKeyConstraint(
            ["debit_account_pk", "asset", "mode"],
            ["ledger_accounts.id", "ledger_accounts.asset", "ledger_accounts.mode"],
        ),
        ForeignKeyConstraint(
            ["credit_account_pk", "asset", "mode"],
            ["ledger_accounts.id", "ledger_accounts.asset", "ledger_accounts.mode"],
        ),
        Index("ix_ledger_movements_debit", "debit_account_pk", "id"),
        Index("ix_ledger_movements_credit", "credit_account_pk", "id"),
    )

    id: Mapped[PrimaryKey]
    transaction_pk: Mapped[int] = mapped_column(index=True)
    mode: Mapped[str]
    asset: Mapped[str]
    debit_account_pk: Mapped[int]
    credit_account_pk: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)
