"""Simulated chains of sandbox projects: blocks and transfers that only exist here."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, UnitsType


class SandboxChain(Base):
    """One project's simulated chain. ``salt`` counts reorgs, so that the blocks of a new branch have new hashes."""

    __tablename__ = "sandbox_chains"
    __table_args__ = (PrimaryKeyConstraint("project_pk", "chain"), CheckConstraint("height >= 0", name="height"))

    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    chain: Mapped[str]
    height: Mapped[int]
    salt: Mapped[int] = mapped_column(server_default="0")


class SandboxBlock(Base):
    """A simulated block."""

    __tablename__ = "sandbox_blocks"
    __table_args__ = (PrimaryKeyConstraint("project_pk", "chain", "height"),)

    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    chain: Mapped[str]
    height: Mapped[int]
    hash: Mapped[str]
    parent_hash: Mapped[str]
    mined_at: Mapped[datetime]


class SandboxTransfer(Base):
    """A simulated transfer; ``height`` is None while it waits to be mined. One that ``reverts`` moves nothing."""

    __tablename__ = "sandbox_transfers"
    __table_args__ = (
        Index("ix_sandbox_transfers_height", "project_pk", "chain", "height"),
        Index("ix_sandbox_transfers_tx_id", "tx_id"),
    )

    id: Mapped[PrimaryKey]
    project_pk: Mapped[int] = mapped_column(ForeignKey("projects.id"))
    chain: Mapped[str]
    tx_id: Mapped[str]
    position: Mapped[str]
    sender: Mapped[str]
    recipient: Mapped[str]
    contract: Mapped[str | None]
    units: Mapped[int] = mapped_column(UnitsType)
    height: Mapped[int | None]
    reverts: Mapped[bool] = mapped_column(server_default="false")
