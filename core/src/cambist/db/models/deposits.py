"""What was read from the chains: cursors, recent blocks, and every transfer to an address of ours."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    Identity,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, UnitsType


class Cursor(Base):
    """The last block of a chain whose transfers are all stored. Every commit compares and sets it."""

    __tablename__ = "chain_cursors"
    __table_args__ = (PrimaryKeyConstraint("chain", "scope"),)

    chain: Mapped[str]
    scope: Mapped[int]
    height: Mapped[int]
    hash: Mapped[str]
    head: Mapped[int]
    finalized: Mapped[int | None]
    updated_at: Mapped[datetime]


class ChainBlock(Base):
    """A recent block on the best chain as it was last seen; one that holds deposits is kept for ever."""

    __tablename__ = "chain_blocks"
    __table_args__ = (
        PrimaryKeyConstraint("chain", "scope", "height"),
        # Forgetting old blocks happens at every look, and must not pass over all that are kept.
        Index("ix_chain_blocks_recent", "chain", "scope", "height", postgresql_where=text("NOT kept")),
    )

    chain: Mapped[str]
    scope: Mapped[int]
    height: Mapped[int]
    hash: Mapped[str]
    parent_hash: Mapped[str]
    mined_at: Mapped[datetime]
    kept: Mapped[bool] = mapped_column(server_default="false")


class Deposit(Base):
    """A transfer to an address of ours. One row for its whole life, however often it is mined again.

    ``status`` is ``detected`` (stands in a block), ``settled`` (has its confirmations and is credited), or
    ``orphaned`` (its block left the chain). ``incarnation`` counts how often it was mined, and tells the credit
    of one life from that of another. ``matches`` says whether token and chain are what the payment asked for.
    ``available_units`` is the part of a settled deposit that went to the merchant's available balance; the rest
    is held. ``ordinal`` is its place within the block.
    """

    __tablename__ = "deposits"
    __table_args__ = (
        UniqueConstraint("chain", "scope", "tx_id", "position"),
        CheckConstraint("units > 0", name="units_positive"),
        CheckConstraint("available_units BETWEEN 0 AND units", name="available_within"),
        CheckConstraint("status = 'settled' OR available_units = 0", name="only_settled_available"),
        CheckConstraint("status IN ('detected', 'settled', 'orphaned')", name="status"),
        Index("ix_deposits_unsettled", "chain", "scope", "height", postgresql_where=text("status = 'detected'")),
        Index("ix_deposits_height", "chain", "scope", "height"),
    )

    id: Mapped[int] = mapped_column(Identity(always=True), primary_key=True)
    deposit_id: Mapped[str] = mapped_column(unique=True)
    chain: Mapped[str]
    scope: Mapped[int]
    tx_id: Mapped[str]
    position: Mapped[str]
    mode: Mapped[str]
    merchant_id: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    address_id: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    payment_id: Mapped[int | None] = mapped_column(ForeignKey("payments.id"), index=True)
    matches: Mapped[bool]
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)
    available_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    sender: Mapped[str | None]
    height: Mapped[int]
    block_hash: Mapped[str]
    ordinal: Mapped[int]
    mined_at: Mapped[datetime]
    required_confirmations: Mapped[int]
    status: Mapped[str] = mapped_column(server_default="detected")
    incarnation: Mapped[int] = mapped_column(server_default="1")
    detected_at: Mapped[datetime] = mapped_column(server_default=func.now())
    settled_at: Mapped[datetime | None]
    orphaned_at: Mapped[datetime | None]
