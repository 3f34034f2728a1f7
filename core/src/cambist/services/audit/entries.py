"""Writing and reading the audit log.

``record`` belongs into the transaction of the act that it tells of, so that neither is there without the other. The
log line is written at once: one whose entry is missing tells of an act that was undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal, TypeAlias

import msgspec
import structlog
from msgspec import Struct, field
from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import AuditEntry
from cambist.db.named import Statement
from cambist.db.structs import columns_of, to_struct

log = structlog.get_logger(__name__)

ActorKind: TypeAlias = Literal["merchant", "key", "tracker", "operator", "stranger", "gateway"]


class Action(StrEnum):
    """What an entry tells of. Each is explained in ``docs/operators/audit.md``."""

    SESSION_OPENED = "session.opened"
    SESSION_ENDED = "session.ended"
    REFRESH_REPLAYED = "session.refresh_replayed"
    SIGN_IN_REFUSED = "session.refused"
    CODE_ASKED = "session.code_asked"
    STEPPED_UP = "session.stepped_up"
    CREDENTIAL_REFUSED = "credential.refused"
    ACCESS_REFUSED = "access.refused"
    REQUESTS_LIMITED = "requests.limited"

    MERCHANT_REGISTERED = "merchant.registered"
    MERCHANT_MADE = "merchant.made"
    MERCHANT_LIMITS_SET = "merchant.limits_set"
    MERCHANT_SUSPENDED = "merchant.suspended"
    MERCHANT_REINSTATED = "merchant.reinstated"
    LIVE_GRANTED = "live.granted"
    LIVE_TAKEN_BACK = "live.taken_back"
    PASSWORD_RESET_ASKED = "password_reset.asked"  # noqa: S105  an action
    PASSWORD_RESET_ISSUED = "password_reset.issued"  # noqa: S105  an action
    PASSWORD_CHANGED = "password.changed"  # noqa: S105  an action
    TWO_FACTOR_ENROLLED = "two_factor.enrolled"
    TWO_FACTOR_ENABLED = "two_factor.enabled"
    TWO_FACTOR_DISABLED = "two_factor.disabled"
    TWO_FACTOR_RESET = "two_factor.reset"
    RECOVERY_CODES_RENEWED = "recovery_codes.renewed"

    MEMBER_INVITED = "member.invited"
    INVITATION_REVOKED = "invitation.revoked"
    MEMBER_JOINED = "member.joined"
    MEMBER_CHANGED = "member.changed"
    MEMBER_REMOVED = "member.removed"
    MEMBER_LEFT = "member.left"

    KEY_ISSUED = "api_key.issued"
    KEY_REVOKED = "api_key.revoked"
    PROJECT_MADE = "project.made"
    PROJECT_CHANGED = "project.changed"
    WEBHOOK_SECRET_ROTATED = "webhook_secret.rotated"  # noqa: S105  an action
    ENDPOINT_ADDED = "webhook_endpoint.added"
    ENDPOINT_CHANGED = "webhook_endpoint.changed"
    ENDPOINT_DELETED = "webhook_endpoint.deleted"
    SIGNATURE_CHECKED = "webhook_signature.checked"
    COINS_CHANGED = "coins.changed"
    COIN_SETTINGS_CHANGED = "coin_settings.changed"
    TRACKER_MADE = "tracker.made"
    TRACKER_CHANGED = "tracker.changed"
    TRACKER_CREDENTIALS_REPLACED = "tracker.credentials_replaced"
    TRACKER_DELETED = "tracker.deleted"
    TRACKER_LIST_CHANGED = "tracker.list_changed"
    ADDRESS_APPROVED = "approved_address.added"
    APPROVAL_WITHDRAWN = "approved_address.removed"

    PAYOUT_ASKED = "payout.asked"
    BATCH_ASKED = "batch.asked"
    REFUND_ASKED = "refund.asked"
    WITHDRAWAL_ASKED = "withdrawal.asked"
    EXCHANGE_ASKED = "exchange.asked"
    CANCEL_ASKED = "cancel.asked"
    OUTBOUND_RETRIED = "outbound.retried"
    FEE_RAISE_ASKED = "outbound.fee_raise_asked"
    SETTLE_ASKED = "outbound.settle_asked"
    SETTLED = "outbound.settled"
    COLLECTION_ASKED = "collection.asked"
    COLLECTION_WITHDRAWN = "collection.withdrawn"
    AUTO_PAYOUT_MADE = "auto_payout.made"
    AUTO_CONVERT_MADE = "auto_convert.made"
    ACCOUNT_ACTIVATED = "account.activated"
    ACCOUNT_DEACTIVATED = "account.deactivated"
    DEPOSIT_ACCEPTED = "deposit.accepted"
    DEPOSIT_RELEASED = "deposit.released"

    OPERATOR_MADE = "operator.made"
    OPERATOR_DISABLED = "operator.disabled"
    OPERATOR_ENABLED = "operator.enabled"
    OPERATOR_ROLE_CHANGED = "operator.role_changed"
    CHAIN_PAUSED = "chain.paused"
    CHAIN_RESUMED = "chain.resumed"
    RESCAN_ASKED = "chain.rescan_asked"
    SIGNER_ANSWER_GIVEN = "signer.answer_given"
    SIGNER_ANSWERED = "signer.answered"
    PRICE_SOURCE_SET_ASIDE = "price_source.set_aside"
    PRICE_SOURCE_TAKEN_BACK = "price_source.taken_back"
    PLATFORM_SETTINGS_CHANGED = "platform_settings.changed"
    CREDITS_GRANTED = "credits.granted"
    PLAN_MADE = "plan.made"
    PLAN_CHANGED = "plan.changed"
    PLAN_GIVEN = "plan.given"
    STAKE_ASKED = "stake.asked"
    CHAIN_ENDPOINT_ADDED = "chain_endpoint.added"
    CHAIN_ENDPOINT_CHECKED = "chain_endpoint.checked"
    CHAIN_ENDPOINT_REMOVED = "chain_endpoint.removed"
    TOKEN_ADDED = "token.added"  # noqa: S105  an action
    TOKEN_CHECKED = "token.checked"  # noqa: S105  an action
    TOKEN_CHANGED = "token.changed"  # noqa: S105  an action
    DELIVERY_SENT_AGAIN = "webhook_delivery.sent_again"
    JOB_ASKED = "job.asked"
    JOB_CHANGED = "job.changed"
    REENCRYPTED = "secrets.reencrypted"
    RESTORED = "gateway.restored"


class Origin(Struct, frozen=True, kw_only=True):
    """Who acts, and from where. ``actor`` is a public identifier; for a key its ``key_pk`` stands for it.

    ``session_id`` is the session of a person, and is told among the details.
    """

    actor_kind: ActorKind
    actor: str | None = None
    key_pk: int | None = None
    address: str | None = None
    merchant_id: str | None = None
    project_id: str | None = None
    session_id: str | None = None

    @property
    def details(self) -> Mapping[str, object]:
        """What is told of it among an entry's details."""
        return {} if self.session_id is None else {"session": self.session_id}


GATEWAY = Origin(actor_kind="gateway")
"""The gateway itself, by a rule that somebody made earlier."""


class Entry(Struct, frozen=True, kw_only=True):
    """An entry as it is stored. Its fields, in this order, are what is sealed."""

    id: int
    at: datetime
    action: str
    actor_kind: str
    actor: str | None
    address: str | None
    merchant_id: str | None
    project_id: str | None
    subject: str | None
    details: Mapping[str, object] = field(default_factory=dict)
    count: int = 1


ENTRY_COLUMNS = columns_of(Entry, AuditEntry)


INSERT = """
INSERT INTO audit_entries (at, action, actor_kind, actor, address, merchant_id, project_id, subject, details)
SELECT :entry_at, :action, :actor_kind, coalesce(:actor, (SELECT key_id FROM api_keys WHERE id = :key_pk)), :address,
    :merchant_id, :project_id, :subject, :details::jsonb{source}
RETURNING actor
"""
"""Writes an entry for each row of ``source``, in a statement that does more than that: see ``entry_values``."""
_RECORD = Statement(INSERT.format(source=""))


def entry_values(
    origin: Origin, action: Action, now: datetime, *, subject: str | None, details: Mapping[str, object]
) -> dict[str, Any]:
    """Return the values of ``INSERT``. Whoever uses it has to call ``tell`` as well."""
    return {
        "entry_at": now,
        "action": action,
        "actor_kind": origin.actor_kind,
        # A key has its own public identifier, which is looked up.
        "actor": origin.actor if origin.key_pk is None else None,
        "key_pk": origin.key_pk,
        "address": origin.address,
        "merchant_id": origin.merchant_id,
        "project_id": origin.project_id,
        "subject": subject,
        "details": msgspec.json.encode(details).decode(),
    }


async def record(  # noqa: PLR0913  each by name
    conn: AsyncConnection,
    origin: Origin,
    action: Action,
    now: datetime,
    *,
    subject: str | None = None,
    details: Mapping[str, object] | None = None,
    line: bool = True,
) -> None:
    """Write down an act, in the transaction that does it.

    ``subject`` is the public identifier of what it is about. ``details`` hold texts, whole numbers, booleans and lists
    of them: nothing secret, and no numbers with a fraction, which a database may spell in another way. Without
    ``line`` there is no log line: for commands, whose log is somebody's terminal.
    """
    told = {**origin.details, **(details or {})}
    actor = (await _RECORD.run(conn, entry_values(origin, action, now, subject=subject, details=told))).scalar_one()
    if line:
        tell(origin, action, actor=actor, subject=subject, details=told)


def tell(  # noqa: PLR0913  each by name
    origin: Origin,
    action: str,
    *,
    actor: str | None,
    subject: str | None = None,
    details: Mapping[str, object],
    count: int = 1,
) -> None:
    """Write the log line of an entry."""
    facts = {
        "actor_kind": origin.actor_kind,
        "actor": actor,
        "address": origin.address,
        "merchant": origin.merchant_id,
        "project": origin.project_id,
        "subject": subject,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    log.info("audit", action=str(action), **known, details=details, count=count)


async def newest(
    conn: AsyncConnection, *, merchant_id: str | None = None, action: str | None = None, limit: int
) -> Sequence[Entry]:
    """Return the newest entries, the newest first; those of a merchant or of an action alone where named."""
    wanted = select(*ENTRY_COLUMNS).order_by(AuditEntry.at.desc(), AuditEntry.id.desc()).limit(limit)
    if merchant_id is not None:
        wanted = wanted.where(AuditEntry.merchant_id == merchant_id)
    if action is not None:
        wanted = wanted.where(AuditEntry.action == action)
    return [to_struct(Entry, row) for row in await conn.execute(wanted)]
