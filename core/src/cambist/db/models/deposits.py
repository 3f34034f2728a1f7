"""What was read from the chains: cursors, recent blocks, and every transfer to an address of ours."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint, UniqueConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, UnitsType, holds_one_of, partial_index


class Cursor(Base):
    """The last block of a chain whose transfers are all stored. Every commit compares and sets it.

    ``books_from`` is the height at which balances were booked as the chain told them, whatever had led to them: what
    came in blocks up to it is in the books already.
    ``tokens_revision`` is that of the newest token which every block from here on must be scanned for: who stores a
    scan that knew fewer is refused.
    ``histories_begun`` counts how often the past of trackers was begun to be read: who stores a scan, and finds it
    unchanged since before its addresses were known, knows that no such past ends before the scan.
    """

    __tablename__ = "chain_cursors"
    __table_args__ = (PrimaryKeyConstraint("chain", "scope"),)

    chain: Mapped[str]
    scope: Mapped[int]
    height: Mapped[int]
    hash: Mapped[str]
    head: Mapped[int]
    finalized: Mapped[int | None]
    books_from: Mapped[int | None]
    updated_at: Mapped[datetime]
    tokens_revision: Mapped[int] = mapped_column(server_default="0")
    histories_begun: Mapped[int] = mapped_column(server_default="0")


class ChainBlock(Base):
    """A recent block on the best chain, as last seen; one that holds deposits or what was sent is kept for ever."""

    __tablename__ = "chain_blocks"
    __table_args__ = (
        PrimaryKeyConstraint("chain", "scope", "height"),
        # Forgetting old blocks happens at every poll, and must not pass over all that are kept.
        partial_index("ix_chain_blocks_recent", "chain", "scope", "height", where="NOT kept"),
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

    ``status`` is ``detected`` (stands in a block), ``confirmed`` (has its confirmations and is credited), or
    ``orphaned`` (its block left the chain). ``incarnation`` counts how often it was mined, and tells the credit
    of one life from that of another. ``matches`` says whether token and chain are what the payment asked for.
    ``available_units`` is the part of a confirmed deposit that went to the merchant's available balance, and
    ``returned_units`` the part that a refund took from held; the rest is held. ``released_units`` of the available
    ones do not count for the order, nor do the returned ones. ``collection_pk`` is the collection that takes it to
    the main wallet. ``resolution`` is what was decided about one that does not simply belong to its order:
    ``accepted``, ``released`` or ``refunded``. ``merchant_pk`` is None for money that the operator sent
    to the platform's own address. ``ordinal`` is its position within the block.

    ``detected_at`` is when it was seen in the block that it stands in, ``first_seen_at`` when in any. ``confirmed_at``
    is when it had its confirmations there; one that was orphaned keeps when it had had them, until it is mined again.

    ``account_pk`` is the account to whose address it came; there ``matches`` says that it counts for the account, and
    ``held_reason`` why it does not. ``fiat`` is what one token was worth in each currency when it was detected, and
    ``fiat_reason`` what is missing of that: ``pending`` while prices are waited for, ``no_price`` for good.
    """

    __tablename__ = "deposits"
    __table_args__ = (
        UniqueConstraint("tx_id", "chain", "scope", "position"),
        CheckConstraint("units > 0", name="units_positive"),
        CheckConstraint("available_units >= 0 AND returned_units >= 0", name="shares_not_negative"),
        CheckConstraint("available_units + returned_units <= units", name="available_within"),
        CheckConstraint("released_units BETWEEN 0 AND available_units", name="released_within"),
        CheckConstraint(
            "status = 'confirmed' OR available_units + returned_units = 0", name="only_confirmed_available"
        ),
        holds_one_of("resolution", "accepted", "released", "refunded"),
        holds_one_of("status", "detected", "confirmed", "orphaned"),
        holds_one_of("held_reason", "wrong_chain", "below_minimum"),
        holds_one_of("fiat_reason", "pending", "no_price"),
        CheckConstraint("held_reason IS NULL OR NOT matches", name="held_for_a_reason"),
        partial_index("ix_deposits_unconfirmed", "chain", "scope", "height", where="status = 'detected'"),
        Index("ix_deposits_height", "chain", "scope", "height"),
        # For lists: of a merchant, and of all.
        Index("ix_deposits_merchant_pk", "merchant_pk", "first_seen_at", "id"),
        Index("ix_deposits_first_seen_at", "first_seen_at", "id"),
        partial_index("ix_deposits_account_pk", "account_pk", "first_seen_at", "id", where="account_pk IS NOT NULL"),
        partial_index("ix_deposits_without_fiat", "id", where="fiat_reason = 'pending'"),
        partial_index(
            "ix_deposits_uncollected",
            "chain",
            "scope",
            "merchant_pk",
            where="status = 'confirmed' AND collection_pk IS NULL",
        ),
        # What a person may have to decide about.
        partial_index(
            "ix_deposits_held",
            "merchant_pk",
            "mode",
            "first_seen_at",
            "id",
            where="status = 'confirmed' AND available_units + returned_units < units",
        ),
        partial_index(
            "ix_deposits_all_held",
            "first_seen_at",
            "id",
            where="status = 'confirmed' AND available_units + returned_units < units",
        ),
    )

    id: Mapped[PrimaryKey]
    deposit_id: Mapped[str] = mapped_column(unique=True)
    chain: Mapped[str]
    scope: Mapped[int]
    tx_id: Mapped[str]
    position: Mapped[str]
    mode: Mapped[str]
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    address_pk: Mapped[int] = mapped_column(ForeignKey("addresses.id"))
    payment_pk: Mapped[int | None] = mapped_column(ForeignKey("payments.id"), index=True)
    account_pk: Mapped[int | None] = mapped_column(ForeignKey("accounts.id"))
    matches: Mapped[bool]
    held_reason: Mapped[str | None]
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)
    available_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    returned_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    released_units: Mapped[int] = mapped_column(UnitsType, server_default="0")
    collection_pk: Mapped[int | None] = mapped_column(ForeignKey("outbound_intents.id"), index=True)
    resolution: Mapped[str | None]
    resolved_at: Mapped[datetime | None]
    sender: Mapped[str | None]
    height: Mapped[int]
    block_hash: Mapped[str]
    ordinal: Mapped[int]
    mined_at: Mapped[datetime]
    required_confirmations: Mapped[int]
    status: Mapped[str] = mapped_column(server_default="detected")
    incarnation: Mapped[int] = mapped_column(server_default="1")
    fiat: Mapped[dict[str, object] | None]
    fiat_reason: Mapped[str | None]
    first_seen_at: Mapped[datetime] = mapped_column(server_default=func.now())
    detected_at: Mapped[datetime] = mapped_column(server_default=func.now())
    confirmed_at: Mapped[datetime | None]
    orphaned_at: Mapped[datetime | None]
