"""Which simulated chains the worker has to follow, as no request does."""

from __future__ import annotations

from cambist.services.trackers.fan_out import UNTOLD

from .exchanges import EXCHANGES_DUE

DUE = f"""
SELECT j.id AS project_pk, c.chain FROM projects j CROSS JOIN unnest($1::text[], $4::bigint[]) AS c (chain, depth)
WHERE j.mode = 'sandbox' AND (
    EXISTS (
        SELECT FROM payments p WHERE p.chain = c.chain AND p.scope = j.id
        AND (p.dirty OR p.status IN ('pending', 'detected', 'confirming'))
        AND (p.dirty OR (p.status = 'pending' AND p.expires_at <= $2))
    ) OR EXISTS (
        SELECT FROM sandbox_chains s
        JOIN sandbox_blocks b ON b.project_pk = s.project_pk AND b.chain = s.chain AND b.height = s.height
        LEFT JOIN chain_cursors r ON r.scope = s.project_pk AND r.chain = s.chain
        WHERE s.project_pk = j.id AND s.chain = c.chain AND r.hash IS DISTINCT FROM b.hash
    ) OR EXISTS (
        SELECT FROM outbound_intents i
        WHERE i.chain = c.chain AND i.scope = j.id AND i.state = 'waiting' AND i.due_at <= $2
    ) OR EXISTS (
        SELECT FROM outbound_txs t JOIN chain_cursors r ON r.chain = t.chain AND r.scope = t.scope
        WHERE t.chain = c.chain AND t.scope = j.id AND t.state = 'mined' AND t.height <= r.height - c.depth
    ) OR {UNTOLD} OR {EXCHANGES_DUE}
)
ORDER BY random() LIMIT $3
"""  # noqa: S608  constants
"""Every project's chain that has a payment to judge, something to send, to finish, to exchange or to tell trackers of,
or whose newest block is not the one that was read last. Of these chains, at this moment, so many, with these depths.
"""
