"""Trackers: lists of addresses that merchants watch, what moved there, and who is told."""

from __future__ import annotations

from datetime import date, datetime

from sqlalchemy import (
    CheckConstraint,
    Date,
    ForeignKey,
    Identity,
    Index,
    PrimaryKeyConstraint,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSON
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, UnitsType, Xid8, holds_one_of, partial_index


class Tracker(Base):
    """A watch list on one chain, and the URL that hears of it. ``webhook_id`` is its name in the API.

    ``scope`` is 0 for the live chain, the project's primary key for its simulated one. ``start_block`` is the first
    block whose movements are told; where it was asked for, ``reads_past`` says that each new address is read from
    there. A deleted tracker stays, switched off and with an empty list, since its log does.
    """

    __tablename__ = "trackers"
    __table_args__ = (
        CheckConstraint("max_addresses >= 1", name="max_addresses"),
        CheckConstraint("start_block >= 0", name="start_block"),
        Index("ix_trackers_project_pk_id", "project_pk", "id"),
        Index("ix_trackers_chain", "chain", "scope"),
    )

    id: Mapped[PrimaryKey]
    webhook_id: Mapped[str] = mapped_column(unique=True)
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    mode: Mapped[str]
    chain: Mapped[str]
    scope: Mapped[int]
    url: Mapped[str]
    name: Mapped[str]
    start_block: Mapped[int]
    reads_past: Mapped[bool] = mapped_column(server_default="false")
    max_addresses: Mapped[int]
    is_active: Mapped[bool] = mapped_column(server_default="true")
    # JSON as it was written, like a payment's.
    metadata_: Mapped[dict | None] = mapped_column("metadata", JSON)  # type: ignore[type-arg]  # free-form JSON object
    token_hash: Mapped[bytes] = mapped_column(unique=True)
    token_encrypted: Mapped[bytes]
    secret_encrypted: Mapped[bytes]
    credentials_rotated_at: Mapped[datetime | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    updated_at: Mapped[datetime] = mapped_column(server_default=func.now())
    deleted_at: Mapped[datetime | None]


class TrackerAddress(Base):
    """An address on a tracker's list, as the chain's family spells it.

    ``chain`` and ``scope`` are its tracker's, which never change: so that other chains' lists cost a fan-out nothing.
    """

    __tablename__ = "tracker_addresses"
    __table_args__ = (
        UniqueConstraint("tracker_pk", "address"),
        # What differs comes first, and decides nearly every comparison alone. All that the fan-out asks for is in it.
        Index(
            "ix_tracker_addresses_address",
            *("address", "chain", "scope", "tracker_pk"),
            postgresql_include=["label"],
        ),
        Index("ix_tracker_addresses_tracker_pk_id", "tracker_pk", "id"),
    )

    id: Mapped[PrimaryKey]
    tracker_pk: Mapped[int] = mapped_column(ForeignKey("trackers.id"))
    chain: Mapped[str]
    scope: Mapped[int]
    address: Mapped[str]
    label: Mapped[str | None]
    # JSON as it was written, like a payment's.
    metadata_: Mapped[dict | None] = mapped_column("metadata", JSON)  # type: ignore[type-arg]  # free-form JSON object
    added_at: Mapped[datetime] = mapped_column(server_default=func.now())


class TrackerHistory(Base):
    """How far a chain's past was read for one tracker: the blocks after ``read_block``, up to ``to_block``, are left.

    All three blocks are None until reading begins. ``xid`` is the last transaction that gave the tracker addresses: a
    poll which may not have known them says so by moving ``to_block``. ``again`` says that some came too late for what
    is being read. ``version`` changes with whatever makes void what is being read: cancelled, begun anew, switched off
    or on. What failed is tried again at ``due_at``. ``untold`` movements could not be told since it was begun.
    """

    __tablename__ = "tracker_histories"
    __table_args__ = (
        holds_one_of("state", "reading", "done", "cancelled"),
        CheckConstraint("num_nonnulls(from_block, to_block, read_block) IN (0, 3)", name="begun"),
        Index("ix_tracker_histories_xid", "chain", "scope", "xid"),
        partial_index("ix_tracker_histories_reading", "chain", "scope", where="state = 'reading'"),
    )

    tracker_pk: Mapped[int] = mapped_column(ForeignKey("trackers.id"), primary_key=True)
    chain: Mapped[str]
    scope: Mapped[int]
    state: Mapped[str] = mapped_column(server_default="reading")
    from_block: Mapped[int | None]
    to_block: Mapped[int | None]
    read_block: Mapped[int | None]
    again: Mapped[bool] = mapped_column(server_default="false")
    xid: Mapped[int] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"))
    version: Mapped[int] = mapped_column(server_default="0")
    failures: Mapped[int] = mapped_column(server_default="0")
    error: Mapped[str | None]
    error_code: Mapped[str | None]
    due_at: Mapped[datetime | None]
    begun_at: Mapped[datetime | None]
    untold: Mapped[int] = mapped_column(server_default="0")


class TrackedAddress(Base):
    """An address that some tracker watches or has watched: what scans look for. Nothing is ever deleted.

    ``xid`` makes new rows findable in commit order, as in ``addresses``.
    """

    __tablename__ = "tracked_addresses"
    __table_args__ = (
        PrimaryKeyConstraint("address", "family", "mode"),
        Index("ix_tracked_addresses_watch", "mode", "family", "xid"),
    )

    mode: Mapped[str]
    family: Mapped[str]
    address: Mapped[str]
    xid: Mapped[int] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"))


class TrackerAddition(Base):
    """How many tracked addresses a merchant added in a month that were not tracked before."""

    __tablename__ = "tracker_additions"
    __table_args__ = (PrimaryKeyConstraint("merchant_pk", "mode", "month"),)

    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str]
    month: Mapped[date] = mapped_column(Date)
    added: Mapped[int] = mapped_column(server_default="0")


class Movement(Base):
    """A transfer from or to a tracked address, as it was mined once. What it says of the transfer never changes.

    ``status`` is ``detected`` (stands in a block), ``confirmed`` (has the chain's confirmations), or ``orphaned``
    (its block left the chain, and it stays so). Where the transaction is mined again, that is another row, of the
    next ``incarnation``: it may pay somebody else then. One of them stands at most. ``first_mined_at`` is the first
    one's ``mined_at``, which no later one and no sandbox's passing time changes: ids begin with it.
    """

    __tablename__ = "movements"
    __table_args__ = (
        CheckConstraint("units > 0", name="units_positive"),
        holds_one_of("status", "detected", "confirmed", "orphaned"),
        partial_index(
            "ix_movements_standing", "chain", "scope", "tx_id", "position", unique=True, where="status <> 'orphaned'"
        ),
        partial_index(
            "ix_movements_orphaned",
            *("chain", "scope", "tx_id", "position", "incarnation"),
            unique=True,
            where="status = 'orphaned'",
        ),
        partial_index("ix_movements_unconfirmed", "chain", "scope", "height", where="status = 'detected'"),
        Index("ix_movements_height", "chain", "scope", "height"),
        Index("ix_movements_stored_at", "stored_at", postgresql_using="brin"),
    )

    id: Mapped[PrimaryKey]
    chain: Mapped[str]
    scope: Mapped[int]
    tx_id: Mapped[str]
    position: Mapped[str]
    sender: Mapped[str | None]
    recipient: Mapped[str]
    token: Mapped[str]
    contract: Mapped[str | None]
    decimals: Mapped[int]
    units: Mapped[int] = mapped_column(UnitsType)
    height: Mapped[int]
    block_hash: Mapped[str]
    mined_at: Mapped[datetime]
    first_mined_at: Mapped[datetime]
    required_confirmations: Mapped[int]
    status: Mapped[str] = mapped_column(server_default="detected")
    incarnation: Mapped[int] = mapped_column(server_default="1")
    stored_at: Mapped[datetime] = mapped_column(server_default=func.now())


class MovementStage(Base):
    """What became of a movement, in the order in which it did: what the fan-out reads.

    Rows of one (chain, scope) are written by whoever holds its cursor in ``chain_cursors``, one transaction after
    the other, so their ids are in the order of their commits. ``head`` is the newest block that was known then. The
    statement that writes one stores or changes its movement, and no movement is deleted before it: a constraint that
    checks it once more would lock each movement's row for every stage.
    """

    __tablename__ = "movement_stages"
    __table_args__ = (
        holds_one_of("stage", "detected", "confirmed", "orphaned"),
        Index("ix_movement_stages_chain", "chain", "scope", "id"),
        Index("ix_movement_stages_at", "at", postgresql_using="brin"),
    )

    id: Mapped[PrimaryKey]
    chain: Mapped[str]
    scope: Mapped[int]
    movement_pk: Mapped[int] = mapped_column(index=True)
    stage: Mapped[str]
    head: Mapped[int]
    at: Mapped[datetime]


class TrackerCursor(Base):
    """The last stage of a chain that every tracker was told of. ``version`` counts how often somebody has locked it."""

    __tablename__ = "tracker_cursors"
    __table_args__ = (PrimaryKeyConstraint("chain", "scope"),)

    chain: Mapped[str]
    scope: Mapped[int]
    stage_pk: Mapped[int] = mapped_column(server_default="0")
    version: Mapped[int] = mapped_column(server_default="0")


class DeferredStage(Base):
    """A stage that could not be told, or waits behind another of the same transfer. It is tried at ``due_at``."""

    __tablename__ = "deferred_stages"
    __table_args__ = (Index("ix_deferred_stages_chain", "chain", "scope", "due_at"),)

    stage_pk: Mapped[int] = mapped_column(ForeignKey("movement_stages.id"), primary_key=True, autoincrement=False)
    chain: Mapped[str]
    scope: Mapped[int]
    movement_pk: Mapped[int]
    attempts: Mapped[int] = mapped_column(server_default="1")
    due_at: Mapped[datetime]


class TrackerTransaction(Base):
    """A transfer as one tracker hears of it. ``direction`` is seen from the watched address: ``in`` or ``out``.

    ``transaction_id`` is derived from webhook, chain, transaction, position, direction and address, so that history and
    live reading find the same one. It stays the same when the transfer is mined again, unless that pays somebody else;
    ``movement_pk`` is the last that was told. ``id`` counts them in the order in which they were stored, and has no
    index of its own: nobody looks for one by it, and each row would take a sixth longer to write. No tracker is ever
    deleted, no movement before this, and both were just read by whoever writes it: constraints that check them once
    more would take as long as all the rest.
    """

    __tablename__ = "tracker_transactions"
    __table_args__ = (
        holds_one_of("direction", "in", "out"),
        Index("ix_tracker_transactions_tracker_pk", "tracker_pk", "created_at", "id"),
        Index("ix_tracker_transactions_movement_pk", "movement_pk", "tracker_pk"),
        Index("ix_tracker_transactions_created_at", "created_at", postgresql_using="brin"),
    )

    id: Mapped[int] = mapped_column(Identity(always=True))
    transaction_id: Mapped[str] = mapped_column(primary_key=True)
    tracker_pk: Mapped[int]
    movement_pk: Mapped[int]
    direction: Mapped[str]
    address: Mapped[str]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
