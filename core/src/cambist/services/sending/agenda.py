"""Which steps of an engine have anything to do: one statement, so that a chain on which nothing happens costs little.

What a step selects is also what it is run for, or more than that: each condition below leaves out what the step itself
asks beside it. A step that is run in vain costs a few statements, one that was left out would leave money where it is.
"""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.structs import to_struct
from cambist.plugin import LendingChain
from cambist.services.chain_pauses import Pausable
from cambist.services.chain_scope import DEEPEST

from .collections.uncollected import KNOWN, UNCOLLECTED
from .context import EngineContext
from .gap_store import LOST
from .gas.loans import LENT, PATIENCE
from .reviving import LOST_FOR
from .shortages import WAITS_FOR_FUNDS

_CONFIRMED = DEEPEST.format(height="(c.height - $5::bigint)", finalized="c.finalized", finality_required="$6::bool")

# $1 and $2 are chain and scope, and $3 is before when loans that were not had back are asked back, as in LENT.
_READ = f"""
SELECT
    -- cancel_store.cancelling() takes the first of just these.
    EXISTS (
        SELECT FROM outbound_intents WHERE chain = $1 AND scope = $2 AND state = 'waiting'
            AND cancel_asked_at IS NOT NULL AND due_at <= $4
    ) AS cancel,
    -- open_store.read_open() takes what is not final yet of just these.
    EXISTS (SELECT FROM outbound_slots WHERE chain = $1 AND scope = $2 AND state = 'open') AS follow,
    -- LostSlots.check() leaves out what waits, and looks now and then.
    EXISTS (SELECT FROM {LOST.format(since="$11")}) AS check_lost,
    -- finality_store.close_final() also asks whether the watcher knows their block, and reopen_undone() of which state
    -- their slots are. Without a cursor neither does anything.
    EXISTS (
        SELECT FROM chain_cursors c JOIN outbound_txs t ON t.chain = c.chain AND t.scope = c.scope
        WHERE c.chain = $1 AND c.scope = $2 AND t.state = 'mined' AND t.height <= {_CONFIRMED}
    ) AS finalize,
    EXISTS (
        SELECT FROM chain_cursors c JOIN outbound_txs t ON t.chain = c.chain AND t.scope = c.scope
            LEFT JOIN chain_blocks b ON b.chain = t.chain AND b.scope = t.scope AND b.height = t.height
        WHERE c.chain = $1 AND c.scope = $2 AND t.state = 'final' AND t.height > c.height - $7::bigint
            AND (t.height > c.height OR b.hash <> t.block_hash)
    ) AS undo,
    -- Collector.collect() looks at all deposits where an operator newly wants one to be collected now.
    (
        SELECT max(asked_at) FROM uncollected_funds WHERE chain = $1 AND scope = $2 AND asked_at IS NOT NULL
    ) AS asked_at,
    -- Or it is time to, or intents wait for some. It needs one to collect, or a row of one that is gone.
    ($8::bool OR EXISTS (
        SELECT FROM outbound_intents WHERE chain = $1 AND scope = $2 AND state = 'waiting' AND reason = $9
    )) AND (EXISTS (SELECT {UNCOLLECTED}) OR EXISTS (SELECT {KNOWN})) AS collect,
    -- loans.ask_back() takes the first of just these.
    $10::bool AND EXISTS ({LENT}) AS ask_back,
    -- All that sends, or keeps from being sent, begins with intents whose time it is: store.waiting(), held_back()
    -- and due_for_reason(), and sweep_store.candidates(). Each leaves out some of them.
    EXISTS (
        SELECT FROM outbound_intents WHERE chain = $1 AND scope = $2 AND state = 'waiting' AND due_at <= $4
    ) AS send,
    EXISTS (SELECT FROM chain_pauses WHERE chain = $1 AND what = '{Pausable.SENDING}') AS paused
"""  # noqa: S608  constants


class Agenda(Struct, frozen=True, kw_only=True):
    """Whether each step has anything to do. ``asked_at``: when an operator last wanted a deposit, still uncollected.

    ``paused``: an operator has paused sending.
    """

    cancel: bool
    follow: bool
    check_lost: bool
    finalize: bool
    undo: bool
    asked_at: datetime | None
    collect: bool
    ask_back: bool
    send: bool
    paused: bool

    @property
    def begins(self) -> bool:
        """Whether there is anything to do that is not begun while sending is paused."""
        return self.collect or self.ask_back or self.send or self.asked_at is not None


async def read_agenda(conn: AsyncConnection, context: EngineContext, now: datetime, *, collects_all: bool) -> Agenda:
    """Return what there is to do now. ``collects_all``: deposits are looked at though nothing waits for them."""
    info, asked_at = context.chain_scope.info, context.clock.monotonic()
    row = await conn.exec_driver_sql(
        _READ,
        (
            *context.chain_scope.key,
            now - PATIENCE,
            now,
            max(1, info.confirmations),
            info.finality_required,
            info.hashes_kept,
            collects_all,
            WAITS_FOR_FUNDS,
            isinstance(context.chain, LendingChain),
            now - LOST_FOR,
        ),
    )
    agenda = to_struct(Agenda, row.one())
    context.pauses.tell(info.id, Pausable.SENDING, is_paused=agenda.paused, asked_at=asked_at)
    return agenda
