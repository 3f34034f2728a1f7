"""Brings what is encrypted under the newest application key, so that the ones before can be destroyed.

Proofs of accounts' addresses are made anew, too: end users pay to them for ever. Those of payments are not, whose
addresses are paid to once, and seals of the audit log cannot be, which prove when something was written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from sqlalchemy import func, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import (
    Account,
    AccountChain,
    AccountKey,
    Address,
    ChainEndpoint,
    KeptAnswer,
    OperatorTwoFactor,
    Project,
    Tracker,
    TwoFactorState,
    WebhookEndpoint,
)
from cambist.db.structs import AnyRow
from cambist.secrets import SecretsBox
from cambist.services import kept_answers
from cambist.services.addresses import account_keys
from cambist.services.addresses.macs import AddressMacs
from cambist.services.chains import setups as chain_setups
from cambist.services.identity.two_factor import service as two_factor
from cambist.services.receiving.accounts.views import proven
from cambist.services.trackers import credentials as tracker_credentials
from cambist.services.webhooks import secrets as signing_secrets

ROWS_MAX = 500
"""Rows of one step: their locks are short."""


class SealedColumn(Struct, frozen=True):
    """A column that is encrypted: its primary key, the name it is bound to, and the name of a row."""

    column: InstrumentedAttribute[Any]
    key: InstrumentedAttribute[Any]
    field: str
    row_name: Callable[[AnyRow], str]
    named_by: Sequence[InstrumentedAttribute[Any]]

    @property
    def name(self) -> str:
        return f"{self.column.class_.__tablename__}.{self.column.key}"


COLUMNS = (
    *(
        SealedColumn(column, Project.id, signing_secrets.FIELD, lambda row: str(row.project_id), (Project.project_id,))
        for column in (Project.webhook_secret_encrypted, Project.previous_secret_encrypted)
    ),
    *(
        SealedColumn(
            column,
            WebhookEndpoint.id,
            signing_secrets.ENDPOINT_FIELD,
            lambda row: str(row.endpoint_id),
            (WebhookEndpoint.endpoint_id,),
        )
        for column in (WebhookEndpoint.secret_encrypted, WebhookEndpoint.previous_secret_encrypted)
    ),
    *(
        SealedColumn(column, table.person_pk, field, lambda row: str(row.pk), ())
        for table in (TwoFactorState, OperatorTwoFactor)
        for column, field in (
            (table.secret_encrypted, two_factor.secret_field(table)),
            (table.pending_encrypted, two_factor.pending_field(table)),
        )
    ),
    *(
        SealedColumn(column, Tracker.id, field, lambda row: str(row.webhook_id), (Tracker.webhook_id,))
        for column, field in (
            (Tracker.token_encrypted, tracker_credentials.TOKEN_FIELD),
            (Tracker.secret_encrypted, signing_secrets.TRACKER_FIELD),
        )
    ),
    SealedColumn(
        ChainEndpoint.url_encrypted,
        ChainEndpoint.id,
        chain_setups.URL_FIELD,
        lambda row: str(row.endpoint_id),
        (ChainEndpoint.endpoint_id,),
    ),
    SealedColumn(
        KeptAnswer.answer_encrypted,
        KeptAnswer.id,
        kept_answers.FIELD,
        kept_answers.row_name,
        (KeptAnswer.asker, KeptAnswer.operation, KeptAnswer.key),
    ),
    SealedColumn(
        AccountKey.xpub_encrypted,
        AccountKey.id,
        account_keys.FIELD,
        lambda row: account_keys.row_name(row.mode, row.coin_type, row.account_index),
        (AccountKey.mode, AccountKey.coin_type, AccountKey.account_index),
    ),
)


async def reencrypt_some(conn: AsyncConnection, box: SecretsBox, sealed: SealedColumn) -> int:
    """Bring at most ``ROWS_MAX`` rows of a column under the newest key, and return how many; 0 when all are.

    Raises SecretsError for what no configured key opens, and changes nothing then.
    """
    prefix = func.substr(sealed.column, 1, len(box.prefix))
    columns = sealed.key.label("pk"), sealed.column.label("sealed"), *sealed.named_by
    old = select(*columns).where(sealed.column.is_not(None), prefix != box.prefix)
    rows = (await conn.execute(old.order_by(sealed.key).limit(ROWS_MAX).with_for_update())).all()
    for row in rows:
        name = sealed.row_name(row)
        plain = box.decrypt(row.sealed, field=sealed.field, row=name)
        fresh = box.encrypt(plain, field=sealed.field, row=name)
        changed = update(sealed.column.class_).where(sealed.key == row.pk).values({sealed.column: fresh})
        await conn.execute(changed)
    return len(rows)


PROOFS = f"{AccountChain.__tablename__}.{AccountChain.address_mac.key}"

ProofKey: TypeAlias = tuple[int, str]
"""The primary key of an account's chain."""

_PROOF_KEY = AccountChain.account_pk, AccountChain.chain
_PROVEN = (
    select(
        *_PROOF_KEY,
        AccountChain.address_mac,
        Account.account_id,
        Account.public_id,
        Account.mode,
        Account.external_id,
        Address.address,
    )
    .join(Account, Account.id == AccountChain.account_pk)
    .join(Address, Address.id == AccountChain.address_pk)
    .order_by(*_PROOF_KEY)
    .with_for_update(of=AccountChain)
)


class Renewed(Struct, frozen=True, kw_only=True):
    """What a step over accounts' addresses did. ``last`` is where the next begins; None after the last step.

    ``unverified`` proofs hold with no configured key: they were left as they are.
    """

    rows: int
    unverified: int
    last: ProofKey | None


async def renew_some(
    conn: AsyncConnection, macs: AddressMacs, after: ProofKey | None, *, rows_max: int = ROWS_MAX
) -> Renewed:
    """Make the proofs of at most ``rows_max`` addresses of accounts with the newest key, from ``after`` on.

    Only of those whose proof holds: what somebody changed is not proven by asking for it.
    """
    old = _PROVEN.where(func.substr(AccountChain.address_mac, 1, len(macs.prefix)) != macs.prefix).limit(rows_max)
    if after is not None:
        old = old.where(tuple_(*_PROOF_KEY) > after)
    found = (await conn.execute(old)).all()
    count = 0
    for row in found:
        account = proven(row, row.chain, row.address)
        if macs.account_holds(account, row.address_mac):
            where = AccountChain.account_pk == row.account_pk, AccountChain.chain == row.chain
            await conn.execute(update(AccountChain).where(*where).values(address_mac=macs.of_account(account)))
            count += 1
    last = (found[-1].account_pk, found[-1].chain) if found else None
    return Renewed(rows=count, unverified=len(found) - count, last=last)
