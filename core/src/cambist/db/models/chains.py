"""What operators change of chains while the gateway runs, and what workers see of them."""

from __future__ import annotations

from datetime import datetime

from sqlalchemy import CheckConstraint, ForeignKey, Index, PrimaryKeyConstraint, UniqueConstraint, text
from sqlalchemy.orm import Mapped, mapped_column

from .base import Base, PrimaryKey, holds_one_of, partial_index


class ChainEndpoint(Base):
    """An endpoint of a live chain: of the operator's file, or added; with what the worker that watches saw of it.

    ``checking``: added, and not asked yet. ``in_use``. ``refused``: it is not what it should be, ``reason`` says why.
    ``removed``: not asked any more; one of the file comes back when the row is in use again. ``absent``: it stood in
    the file. ``url_encrypted`` is null where the plugin does not tell addresses. ``replaces_pk`` is removed when this
    is taken. ``claimed_until`` is how long a worker has to check it.
    """

    __tablename__ = "chain_endpoints"
    __table_args__ = (
        UniqueConstraint("endpoint_id"),
        holds_one_of("origin", "file", "added"),
        holds_one_of("state", "checking", "in_use", "refused", "removed", "absent"),
        CheckConstraint("origin = 'file' OR url_encrypted IS NOT NULL", name="added_with_url"),
        Index("ix_chain_endpoints_chain", "chain", "id"),
        partial_index("ix_chain_endpoints_checking", "id", where="state = 'checking'"),
    )

    id: Mapped[PrimaryKey]
    endpoint_id: Mapped[str]
    chain: Mapped[str]
    origin: Mapped[str]
    name: Mapped[str]
    url_encrypted: Mapped[bytes | None]
    state: Mapped[str]
    reason: Mapped[str | None]
    replaces_pk: Mapped[int | None] = mapped_column(ForeignKey("chain_endpoints.id"))
    claimed_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]
    healthy: Mapped[bool | None]
    head: Mapped[int | None]
    set_aside: Mapped[str | None]
    last_error: Mapped[str | None]
    calls: Mapped[int | None]
    failures: Mapped[int | None]
    rate_limited: Mapped[int | None]
    calls_per_minute: Mapped[int | None]
    latency_ms: Mapped[int | None]
    seen_at: Mapped[datetime | None]


class ChainState(Base):
    """How a live chain stands, as the worker that watches it saw it last; ``problem`` says why it is not connected.

    ``error`` is what the last poll said that failed; it stays while polls fail. ``setup_problem`` is why the worker
    goes on with what it had before a change. Each has its code beside it. ``quorum`` is how many endpoints must agree.
    """

    __tablename__ = "chain_states"

    chain: Mapped[str] = mapped_column(primary_key=True)
    problem: Mapped[str | None]
    problem_code: Mapped[str | None]
    setup_problem: Mapped[str | None]
    setup_problem_code: Mapped[str | None]
    error: Mapped[str | None]
    error_code: Mapped[str | None]
    failing_since: Mapped[datetime | None]
    quorum: Mapped[int]
    seen_at: Mapped[datetime]


class ChainToken(Base):
    """A token of a chain that operators have added or decided about.

    ``checking``: its contract has not been asked yet. ``enabled``, ``disabled``: no new payments ask for it, what comes
    is credited still. ``refused``: ``reason`` says why. ``replaced``: another contract has its symbol, and it is not
    looked for any more. ``origin`` is ``file`` for those of the plugin and of the operator's file, of which only
    ``state`` and ``default_enabled`` count.

    ``revision`` grows by chain with every token that is looked for; ``since_height`` is the first block in which it is
    found, null where the chain was never read before. ``sendable`` is what the signer said.
    """

    __tablename__ = "chain_tokens"
    __table_args__ = (
        UniqueConstraint("token_id"),
        holds_one_of("origin", "file", "added"),
        holds_one_of("state", "checking", "enabled", "disabled", "refused", "replaced"),
        CheckConstraint(
            "origin = 'file' OR state NOT IN ('enabled', 'disabled', 'replaced')"
            " OR (symbol IS NOT NULL AND decimals IS NOT NULL AND revision IS NOT NULL)",
            name="in_use_whole",
        ),
        # The native coin, whose contract is null, is one token, too.
        Index(
            "ix_chain_tokens_contract",
            "chain",
            text("coalesce(contract, '')"),
            unique=True,
            postgresql_where=text("state IN ('checking', 'enabled', 'disabled')"),
        ),
        partial_index(
            "ix_chain_tokens_symbol", "chain", "symbol", where="state IN ('enabled', 'disabled')", unique=True
        ),
        partial_index("ix_chain_tokens_checking", "id", where="state = 'checking'"),
    )

    id: Mapped[PrimaryKey]
    token_id: Mapped[str]
    chain: Mapped[str]
    contract: Mapped[str | None]
    origin: Mapped[str]
    symbol: Mapped[str | None]
    decimals: Mapped[int | None]
    label: Mapped[str | None]
    state: Mapped[str]
    reason: Mapped[str | None]
    replaces: Mapped[bool] = mapped_column(server_default="false")
    default_enabled: Mapped[bool] = mapped_column(server_default="true")
    revision: Mapped[int | None]
    since_height: Mapped[int | None]
    sendable: Mapped[bool | None]
    claimed_until: Mapped[datetime | None]
    created_at: Mapped[datetime]
    changed_at: Mapped[datetime]


class TokenMerchant(Base):
    """Whether one merchant may ask for payments in a token, where that is not what the token says for all."""

    __tablename__ = "token_merchants"
    __table_args__ = (PrimaryKeyConstraint("token_pk", "merchant_pk"),)

    token_pk: Mapped[int] = mapped_column(ForeignKey("chain_tokens.id"))
    merchant_pk: Mapped[int] = mapped_column(ForeignKey("merchants.id"))
    enabled: Mapped[bool]
