"""Background work: jobs that somebody asked for, what they left behind, and the moments of recurring jobs."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint, func
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of, partial_index


class Job(Base):
    """Long work that somebody asked for, done in slices.

    ``lease_token`` counts its leases: what is written under an older one is refused. A running job whose
    ``leased_until`` has passed may be taken over. ``progress`` is what the next slice goes on from. At most one
    unfinished job of a kind has the same ``unique_key``. ``error_code`` is what ``error`` says, one of ``Trouble``.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        holds_one_of("state", "queued", "running", "succeeded", "failed", "cancelled"),
        CheckConstraint("(state = 'running') = (leased_until IS NOT NULL)", name="running_is_leased"),
        CheckConstraint("(finished_at IS NULL) = (state IN ('queued', 'running'))", name="finished"),
        holds_one_of("mode", "live", "sandbox"),
        partial_index("ix_jobs_unfinished", "kind", "unique_key", unique=True, where="state IN ('queued', 'running')"),
        partial_index("ix_jobs_finished_at", "finished_at", where="finished_at IS NOT NULL"),
        Index("ix_jobs_created_at", "created_at", "id"),
        # What came of the last one of a kind, however many others were asked for since. One that was tried again ends
        # behind those that were asked for later.
        partial_index("ix_jobs_succeeded", "kind", "finished_at", "id", where="state = 'succeeded'"),
    )

    id: Mapped[PrimaryKey]
    job_id: Mapped[str] = mapped_column(unique=True)
    kind: Mapped[str]
    arguments: Mapped[dict[str, object]]
    requested_by: Mapped[str]
    merchant_pk: Mapped[int | None] = mapped_column(ForeignKey("merchants.id"))
    mode: Mapped[str | None]
    unique_key: Mapped[str | None]
    state: Mapped[str] = mapped_column(server_default="queued")
    attempts: Mapped[int] = mapped_column(server_default="0")
    due_at: Mapped[datetime]
    worker: Mapped[str | None]
    lease_token: Mapped[int] = mapped_column(server_default="0")
    leased_until: Mapped[datetime | None]
    progress: Mapped[dict[str, object]] = mapped_column(server_default="{}")
    result: Mapped[dict[str, object] | None]
    error: Mapped[str | None]
    error_code: Mapped[str | None]
    created_at: Mapped[datetime] = mapped_column(server_default=func.now())
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]


class JobOutput(Base):
    """A piece of the file that a job makes. The file is all pieces in their order."""

    __tablename__ = "job_outputs"
    __table_args__ = (PrimaryKeyConstraint("job_pk", "number"),)

    job_pk: Mapped[int] = mapped_column(ForeignKey("jobs.id", ondelete="CASCADE"))
    number: Mapped[int]
    content: Mapped[bytes]


class CronRun(Base):
    """One moment of a recurring job. Whoever inserts the row runs the job; a second worker finds it taken.

    A run that was neither finished nor given up when ``leased_until`` passes may be taken over. ``error`` and its code,
    ``error_code``, are None where it succeeded.
    """

    __tablename__ = "cron_runs"
    __table_args__ = (PrimaryKeyConstraint("name", "due_at"), Index("ix_cron_runs_due_at", "due_at"))

    name: Mapped[str]
    due_at: Mapped[datetime]
    worker: Mapped[str]
    attempts: Mapped[int] = mapped_column(server_default="1")
    claimed_at: Mapped[datetime]
    leased_until: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    error: Mapped[str | None]
    error_code: Mapped[str | None]
