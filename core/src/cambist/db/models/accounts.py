"""Accounts: a merchant's own customers, each with one permanent address per chain."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import ForeignKey, Index, PrimaryKeyConstraint, UniqueConstraint, func
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey


class Account(Base):
    """An end user of a project, named by the merchant. ``public_id`` names the page that shows where to pay.

    One that is not active keeps its addresses, and what comes to them is credited all the same.
    """

    __tablename__ = "accounts"
    __table_args__ = (
        UniqueConstraint("project_pk", "external_id"),
        Index("ix_accounts_project_pk", "project_pk", "created_at", "id"),
        Index("ix_accounts_created_at", "created_at", "id"),
        Index("ix_accounts_external_id", "external_id", "created_at", "id"),
    )

    id: Mapped[PrimaryKey]
    account_id: Mapped[str] = mapped_column(unique=True)
    public_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    external_id: Mapped[str]
    # JSON as it was written, like a payment's.
    metadata_: Mapped[dict | None] = mapped_column("metadata", JSON)  # type: ignore[type-arg]  # free-form JSON object
    is_active: Mapped[bool] = mapped_column(server_default="true")
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())


class AccountChain(Base):
    """A chain on which an account takes deposits, at the address that it has in the chain's family.

    ``address_mac`` proves that the address is this account's: see ``services/addresses/macs.py``.
    """

    __tablename__ = "account_chains"
    __table_args__ = (PrimaryKeyConstraint("account_pk", "chain"),)

    account_pk: Mapped[int] = mapped_column(ForeignKey("accounts.id"))
    chain: Mapped[str]
    address_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"), index=True)
    address_mac: Mapped[bytes]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
