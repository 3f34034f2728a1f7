"""Brings what is encrypted under the newest application key, so that the ones before can be destroyed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from sqlalchemy import func, select, update
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.orm import InstrumentedAttribute

from cambist.db.models import AccountKey, Project, TwoFactorState
from cambist.db.structs import AnyRow
from cambist.secrets import SecretsBox
from cambist.services.addresses import account_keys
from cambist.services.identity.two_factor import service as two_factor
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
    SealedColumn(
        Project.webhook_secret_encrypted,
        Project.id,
        signing_secrets.FIELD,
        lambda row: str(row.project_id),
        (Project.project_id,),
    ),
    *(
        SealedColumn(column, TwoFactorState.merchant_pk, field, lambda row: str(row.merchant_pk), ())
        for column, field in (
            (TwoFactorState.secret_encrypted, two_factor.SECRET_FIELD),
            (TwoFactorState.pending_encrypted, two_factor.PENDING_FIELD),
        )
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
    old = select(sealed.key, sealed.column, *sealed.named_by).where(sealed.column.is_not(None), prefix != box.prefix)
    rows = (await conn.execute(old.order_by(sealed.key).limit(ROWS_MAX).with_for_update())).all()
    for row in rows:
        name = sealed.row_name(row)
        plain = box.decrypt(row[1], field=sealed.field, row=name)
        fresh = box.encrypt(plain, field=sealed.field, row=name)
        changed = update(sealed.column.class_).where(sealed.key == row[0]).values({sealed.column: fresh})
        await conn.execute(changed)
    return len(rows)
