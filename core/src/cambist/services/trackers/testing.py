"""A made-up transaction for a tracker's URL, signed with its real secret, so that a receiver can be tried out."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db import models
from cambist.domain.moments import moment
from cambist.ports import Ids
from cambist.services.webhooks.outbox import encode_body
from cambist.services.webhooks.sender import Message

from .create import TrackerContext
from .credentials import TrackerAccess, no_such_token

TEST_EVENT = "transaction.confirmed"
NOBODY = "0x" + "00" * 19 + "01"
"""What is made up must not look like somewhere to send money to."""


async def prepare(conn: AsyncConnection, context: TrackerContext, tracker: TrackerAccess) -> tuple[str, Message]:
    """Make up the delivery, and say where it goes. Raises UnauthenticatedError for a tracker that was just deleted."""
    columns = models.Tracker.url, models.Tracker.secret_encrypted
    mine = models.Tracker.id == tracker.pk, models.Tracker.deleted_at.is_(None)
    row = (await conn.execute(select(*columns).where(*mine))).one_or_none()
    if row is None:
        raise no_such_token()
    chain, ids = context.registry.chains[tracker.chain], context.ids
    data = sample(chain.id, chain.native.symbol, chain.confirmations, ids, context.clock.now())
    message = Message(
        id=ids.new("evt_test"),
        event=TEST_EVENT,
        body=encode_body(TEST_EVENT, tracker.webhook_id, data),
        secret=context.secrets.reveal_secret(tracker.webhook_id, row.secret_encrypted),
        is_test=True,
    )
    return row.url, message


def sample(chain: str, symbol: str, confirmations: int, ids: Ids, now: datetime) -> dict[str, Any]:
    """Make up a transfer of native coin, as a tracker is told of it (``webhooks/payloads.py``)."""
    return {
        "resource": "transaction",
        "transactionId": ids.new("mov_test"),
        "direction": "in",
        "address": NOBODY,
        "chain": chain,
        "txHash": "0x" + "00" * 32,
        "from": NOBODY,
        "to": NOBODY,
        "token": symbol,
        "contractAddress": None,
        "amount": "25",
        "blockNumber": 1,
        "blockHash": "0x" + "00" * 32,
        "blockTime": moment(now),
        "confirmations": confirmations,
        "requiredConfirmations": confirmations,
        "status": "confirmed",
        "timestamp": moment(now),
        "isTest": True,
    }
