"""What a tracker is not told any more: it was switched off, the address left its list, or its merchant is suspended.

The claim decides, and sends nothing of it. What else waits for a tracker that is switched off is cancelled beside it.
What waits for one of a suspended merchant is dropped: after reinstating, the merchant can have it sent again.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from cambist.db.engine import Database

ROWS_MAX = 1_000

STOPPED = """(d.tracker_pk IS NOT NULL AND (
    (SELECT t.is_active FROM trackers t WHERE t.id = d.tracker_pk) IS NOT TRUE
    OR (
        SELECT (
            SELECT a.address FROM tracker_addresses a
            WHERE a.tracker_pk = o.tracker_pk AND a.address = o.address LIMIT 1
        ) IS NULL
        FROM tracker_transactions o WHERE o.transaction_id = d.resource_id
    ) IS TRUE
))"""
"""The condition on a delivery ``d`` that it is not to be sent any more.

Nobody knows any more which address an old one is about whose transaction was deleted after its time: whoever asks for
that again gets it.
"""

SUSPENDED = """(d.tracker_pk IS NOT NULL AND EXISTS (
    SELECT FROM merchants m WHERE m.id = p.merchant_pk AND m.suspended_at IS NOT NULL
))"""
"""The condition on a delivery ``d`` to a tracker of a project ``p`` that its merchant is suspended."""

# In the order of the tracker's queue, so that no more is read than is cancelled.
_CANCEL = """
WITH stopped AS (
    SELECT d.id, t.is_active
    FROM trackers t JOIN projects p ON p.id = t.project_pk JOIN merchants m ON m.id = p.merchant_pk
    CROSS JOIN LATERAL (
        SELECT id FROM webhook_deliveries
        WHERE target_key = 4611686018427387904 + t.id AND status = 'pending' AND due_at <= $1
        ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ) AS d
    WHERE t.id = ANY($2::bigint[]) AND (NOT t.is_active OR m.suspended_at IS NOT NULL)
)
UPDATE webhook_deliveries d SET status = CASE WHEN stopped.is_active THEN 'dropped' ELSE 'cancelled' END
FROM stopped WHERE d.id = stopped.id
"""


async def cancel_stopped(db: Database, tracker_pks: Collection[int], *, now: datetime) -> None:
    """Cancel what is due for those of these trackers that are not told any more, so that it is in nobody's way.

    Each part is a transaction of its own, and none of them a claim's. What whoever claims meets of an address that left
    its list, the claim itself cancels.
    """
    for tracker_pk in tracker_pks:
        cancelled = ROWS_MAX
        while cancelled == ROWS_MAX:
            async with db.autocommit() as conn:
                cancelled = (await conn.exec_driver_sql(_CANCEL, (now, [tracker_pk], ROWS_MAX))).rowcount
