"""The platform's stake on chains that lend: what the operator locks, unlocks and takes back of its gas station's coin.

What is staked still belongs to the gas station, so in the books it only changes its account.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.domain.money import format_units
from cambist.plugin import Action, ChainInfo, Units
from cambist.ports import Ids

from .errors import ConflictError, InvalidError, UnavailableError
from .ledger import PLATFORM, Account, Movement, Posting, Purpose, asset_key, post
from .outbound.intents import NewIntent, is_coming, submit
from .outbound.outcomes import Moment, QuietOutcomes, Sent
from .quotes import read_units
from .wallet_addresses import gas_station

MODE: Final = "live"
SCOPE: Final = 0
LISTED_MAX: Final = 100

Wish: TypeAlias = Literal["lock", "unlock", "withdraw"]
"""``lock`` makes coin a stake, ``unlock`` begins the chain's waiting time, ``withdraw`` takes back what has waited."""

ACTIONS: Final[Mapping[Wish, tuple[str, Action]]] = {
    "lock": ("stake", "stake"),
    "unlock": ("unstake", "unstake"),
    "withdraw": ("withdraw_stake", "withdraw"),
}
KINDS: Final = tuple(kind for kind, _ in ACTIONS.values())
_CHANGED_SINCE = """
SELECT EXISTS (SELECT FROM outbound_intents WHERE recipient_address_id = $1 AND chain = $2 AND scope = $3
    AND kind = ANY($4::text[]) AND finished_at > $5)
"""


class StakeRequest(Struct, frozen=True, kw_only=True):
    """What the operator asked for, and what became of it: ``state`` and ``reason`` are the intent's."""

    reference: str
    chain: str
    wish: Wish
    units: Units
    state: str
    reason: str | None
    tx_id: str | None
    created_at: datetime


async def request_stake(  # noqa: PLR0913, PLR0917  what, where and how much
    conn: AsyncConnection, ids: Ids, info: ChainInfo, wish: Wish, units: Units | None, now: datetime
) -> str:
    """Ask for a change of the stake, and return its reference. ``units`` is None for all that can be withdrawn.

    Judged by what the worker saw last, which must be later than the last change. All is withdrawn or nothing: chains
    need not offer less, and what they give back would differ from what is booked. Raises InvalidError, ConflictError,
    UnavailableError.
    """
    station = await gas_station(conn, info.family, MODE)
    row = (
        await conn.exec_driver_sql(
            "SELECT balance, staked, lent, withdrawable, checked_at FROM gas_stations WHERE mode = $1 AND chain = $2",
            (MODE, info.id),
        )
    ).one_or_none()
    if station is None or row is None:
        raise UnavailableError("CHAIN_UNAVAILABLE", f"The worker has not seen the gas station of {info.id} yet.")
    if row.staked is None:
        raise InvalidError("CHAIN_WITHOUT_STAKES", f"Nothing can be staked on {info.id}.")
    kind, action = ACTIONS[wish]
    for other in KINDS:
        if await is_coming(conn, info.id, SCOPE, station.row, other):
            raise ConflictError("STAKE_CHANGING", f"A change of the stake on {info.id} is under way already.")
    changed = await conn.exec_driver_sql(_CHANGED_SINCE, (station.row, info.id, SCOPE, list(KINDS), row.checked_at))
    if changed.scalar_one():
        text = f"The stake on {info.id} has just changed; the worker looks at it again within half a minute."
        raise ConflictError("STAKE_CHANGING", text)
    room = {"lock": row.balance, "unlock": row.staked - row.lent, "withdraw": row.withdrawable}[wish]
    wanted = int(room) if units is None else units
    text = f"{format_units(int(room), info.native.decimals)} {info.native.symbol}"
    if not 0 < wanted <= room:
        raise InvalidError("STAKE_OUT_OF_RANGE", f"To {wish} on {info.id} there is {text}.")
    if wish == "withdraw" and wanted != room:
        raise InvalidError("STAKE_OUT_OF_RANGE", f"To withdraw on {info.id} takes back all that has waited: {text}.")
    intent = NewIntent(
        reference=f"{kind}:{ids.new('stk')}",
        kind=kind,
        action=action,
        mode=MODE,
        chain=info.id,
        scope=SCOPE,
        merchant_row=None,
        source_row=station.row,
        recipient_row=station.row,
        target=station.address,
        token=info.native,
        units=Units(wanted),
    )
    await submit(conn, [intent], now)
    return intent.reference


def read_amount(info: ChainInfo, wish: Wish, text: str | None) -> Units | None:
    """Return an amount that somebody wrote, None for all of it. Raises InvalidError."""
    if text is not None:
        return read_units(text, info.native)
    if wish != "withdraw":
        raise InvalidError.field("amount", f"is required to {wish}")
    return None


async def list_stake_requests(conn: AsyncConnection, chain: str | None = None) -> Sequence[StakeRequest]:
    """Return the latest requests, newest first."""
    rows = await conn.exec_driver_sql(
        "SELECT i.reference, i.chain, i.kind, i.units, i.state, i.reason, i.created_at, (SELECT t.tx_id FROM"
        " outbound_txs t JOIN outbound_slots s ON s.id = t.slot_id WHERE s.intent_id = i.id ORDER BY t.id DESC LIMIT 1)"
        " AS tx_id FROM outbound_intents i WHERE i.kind = ANY($1::text[]) AND ($2::text IS NULL OR i.chain = $2)"
        " ORDER BY i.id DESC LIMIT $3",
        (list(KINDS), chain, LISTED_MAX),
    )
    wishes = {kind: wish for wish, (kind, _) in ACTIONS.items()}
    return [
        StakeRequest(
            reference=row.reference,
            chain=row.chain,
            wish=wishes[row.kind],
            units=Units(int(row.units)),
            state=row.state,
            reason=row.reason,
            tx_id=row.tx_id,
            created_at=row.created_at,
        )
        for row in rows
    ]


class StakeOutcomes(QuietOutcomes):
    """Coin that becomes a stake, or a stake that becomes coin again; ``unlock`` changes nothing that is booked."""

    async def on_final(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:  # noqa: ARG002
        """Move it to where it lies now."""
        await _post(conn, sent, back=False)

    async def on_undone(self, conn: AsyncConnection, sent: Sequence[Sent], moment: Moment) -> None:  # noqa: ARG002
        """Move it back."""
        await _post(conn, sent, back=True)


async def _post(conn: AsyncConnection, sent: Sequence[Sent], *, back: bool) -> None:
    postings = []
    for one in sent:
        if one.kind == "unstake":
            continue
        asset = asset_key(one.chain, None)
        coin, stake = (Account(PLATFORM, asset, purpose) for purpose in (Purpose.CUSTODY_GAS, Purpose.CUSTODY_STAKED))
        into_stake = (one.kind == "stake") != back
        debit, credit = (stake, coin) if into_stake else (coin, stake)
        postings.append(
            Posting(
                mode=one.mode,
                kind=f"{one.kind}_reversal" if back else one.kind,
                reference=f"{one.reference}:{one.incarnation}",
                movements=[Movement(debit, credit, one.units)],
            )
        )
    if postings:
        await post(conn, sent[0].mode, postings)
