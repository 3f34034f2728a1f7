"""What has changed lately, for the streams of dashboards."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import func, text
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, Xid8, holds_one_of


class Change(Base):
    """Something that a page may show was added or changed, written by triggers in the transaction that did it.

    It says what to read again, not what it is now. ``object_id`` is its public identifier. Without ``merchant_pk`` it
    is the platform's; without ``project_pk`` it belongs to no single project. ``xid`` tells readers which transactions
    they have not seen. ``intent_kind`` is what something that is to be sent is for. Rows are kept for minutes, and
    refer to others without constraints, which would lock those.
    """

    __tablename__ = "changes"
    __table_args__ = (holds_one_of("mode", "live", "sandbox"),)

    id: Mapped[PrimaryKey]
    xid: Mapped[int] = mapped_column(Xid8, server_default=text("pg_current_xact_id()"), index=True)
    at: Mapped[datetime] = mapped_column(server_default=func.now())
    kind: Mapped[str]
    object_id: Mapped[str]
    merchant_pk: Mapped[int | None]
    project_pk: Mapped[int | None]
    mode: Mapped[str | None]
    status: Mapped[str | None]
    intent_kind: Mapped[str | None]
