"""Payments, the addresses they are paid to, and the idempotency keys they are created under."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint, UniqueConstraint, func, text
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, UnitsType, Xid8, holds_one_of, partial_index


class Payment(Base):
    """An order that waits for its money, and what became of it.

    ``scope`` is 0 on live chains and the project's primary key on its simulated ones. ``dirty`` says that a deposit
    came or went since the payment was last judged. ``order_units`` is what the ended payment credited to its
    order, ``accepted_units`` how far beyond what was expected the merchant took surplus for it. ``refunded_units`` is
    the sum of refunds that were asked for and have not failed.
    """

    __tablename__ = "payments"
    __table_args__ = (
        CheckConstraint("expected_units > 0", name="expected_positive"),
        CheckConstraint("received_units >= 0", name="received_not_negative"),
        CheckConstraint("required_confirmations >= 1", name="confirmations_positive"),
        holds_one_of(
            "status",
            "pending",
            "detected",
            "confirming",
            "paid",
            "underpaid",
            "overpaid",
            "expired",
            "failed",
            "refunded",
        ),
        CheckConstraint("(pricing_mode = 'fiat') = (exchange_rate IS NOT NULL)", name="fiat_has_rate"),
        # For lists: of a project, of a merchant, of all; and for what an operator looks for.
        Index("ix_payments_project_pk", "project_pk", "created_at", "id"),
        Index("ix_payments_project_status", "project_pk", "status", "created_at", "id"),
        Index("ix_payments_merchant_pk", "merchant_pk", "created_at", "id"),
        Index("ix_payments_status", "status", "created_at", "id"),
        Index("ix_payments_created_at", "created_at", "id"),
        partial_index("ix_payments_order", "order_id", "project_pk", "created_at", "id", where="order_id IS NOT NULL"),
        partial_index("ix_payments_order_id", "order_id", "created_at", "id", where="order_id IS NOT NULL"),
        Index(
            "ix_payments_customer_email",
            text("lower(customer_email)"),
            "id",
            postgresql_where=text("customer_email IS NOT NULL"),
        ),
        # What a watcher judges on every poll of its chain: small, however many payments there are.
        partial_index("ix_payments_active", "chain", "scope", where="dirty OR status IN ('detected', 'confirming')"),
        partial_index("ix_payments_expiring", "chain", "scope", "expires_at", where="status = 'pending'"),
    )

    id: Mapped[PrimaryKey]
    payment_id: Mapped[str] = mapped_column(unique=True)
    public_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    chain: Mapped[str]
    scope: Mapped[int]
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    address: Mapped[str]
    pricing_mode: Mapped[str]
    amount: Mapped[Decimal]
    fiat_currency: Mapped[str | None]
    exchange_rate: Mapped[Decimal | None]
    rate_source: Mapped[str | None]
    expected_units: Mapped[int] = mapped_column(UnitsType)
    received_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    order_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    accepted_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    refunded_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    status_before_refund: Mapped[str | None]
    tolerance_bps: Mapped[int] = mapped_column(server_default="0")
    grace_s: Mapped[int] = mapped_column(server_default="0")
    required_confirmations: Mapped[int]
    status: Mapped[str] = mapped_column(server_default="pending")
    dirty: Mapped[bool] = mapped_column(server_default="false")
    tx_id: Mapped[str | None]
    order_id: Mapped[str | None]
    webhook_url: Mapped[str | None]
    success_url: Mapped[str | None]
    cancel_url: Mapped[str | None]
    customer_name: Mapped[str | None]
    customer_email: Mapped[str | None]
    # JSON as it was written: JSONB writes out every exponent, and 1e308 comes back as 309 digits.
    metadata_: Mapped[dict | None] = mapped_column("metadata", JSON)  # type: ignore[type-arg]  # free-form JSON object
    expires_at: Mapped[datetime]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]
    address_mac: Mapped[bytes]


class Address(Base):
    """An address of ours, for ever.

    ``purpose`` is ``payment``, ``account`` for an end user's permanent one, ``wallet`` for a merchant's main wallet, or
    ``gas`` for the platform's own (account 0, which has no merchant). After a restore without the accounts' file nobody
    knows whose a permanent one is: then ``account_pk`` is None. ``xid`` makes
    new rows findable in commit order, which ids do not show.
    """

    __tablename__ = "addresses"
    __table_args__ = (
        UniqueConstraint("mode", "family", "address"),
        UniqueConstraint("mode", "family", "account_index", "change", "address_index"),
        holds_one_of("purpose", "payment", "account", "wallet", "gas"),
        CheckConstraint("account_pk IS NULL OR purpose = 'account'", name="account_has_owner"),
        # By its branch the signer knows what must never be delegated.
        CheckConstraint("(purpose = 'account') = (change = 2)", name="account_has_branch"),
        CheckConstraint("(purpose = 'gas') = (merchant_pk IS NULL)", name="platform_owns_gas"),
        Index("ix_addresses_watch", "mode", "family", "xid"),
        # One address serves all of a family's chains, and of twins that make an account only one can give it one.
        partial_index(
            "ix_addresses_account_pk_family", "account_pk", "family", where="account_pk IS NOT NULL", unique=True
        ),
        # A few among millions, which are asked for at each poll of a chain and with each payout.
        partial_index("ix_addresses_own", "mode", "family", "merchant_pk", where="purpose IN ('wallet', 'gas')"),
    )

    id: Mapped[PrimaryKey]
    mode: Mapped[str]
    family: Mapped[str]
    address: Mapped[str]
    purpose: Mapped[str] = mapped_column(server_default="payment")
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    payment_pk: Mapped[int | None] = mapped_column(ForeignKey("payments.id"), index=True)
    account_pk: Mapped[int | None] = mapped_column(ForeignKey("accounts.id"))
    account_index: Mapped[int]
    change: Mapped[int]
    address_index: Mapped[int]
    xid: Mapped[int] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"))


class IdempotencyKey(Base):
    """A key that was used, and what it led to. The row comes first, so that a concurrent twin waits for it."""

    __tablename__ = "idempotency_keys"
    __table_args__ = (PrimaryKeyConstraint("merchant_pk", "mode", "operation", "key"),)

    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    operation: Mapped[str]
    key: Mapped[str]
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    request_hash: Mapped[bytes]
    resource_id: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())


class KeptAnswer(Base):
    """What a request under a key was answered, sealed, for a day. ``asker`` is whose key it is: see ``Once``.

    An answer that is kept is there when the transaction ends that has inserted the row.
    """

    __tablename__ = "kept_answers"
    __table_args__ = (UniqueConstraint("asker", "operation", "key"), Index(None, "created_at"))

    id: Mapped[PrimaryKey]
    asker: Mapped[str]
    operation: Mapped[str]
    key: Mapped[str]
    request_hash: Mapped[bytes]
    answer_encrypted: Mapped[bytes | None]
    created_at: Mapped[datetime]
