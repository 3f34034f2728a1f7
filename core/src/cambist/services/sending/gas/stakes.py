"""The platform's stake on chains that lend: what the operator stakes, unstakes and withdraws of its gas station's coin.

What is staked still belongs to the gas station, so in the books it only changes its account.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, Literal, TypeAlias, cast

from msgspec import Struct
from sqlalchemy import Select, exists, select
from sqlalchemy.ext.asyncio import AsyncConnection

from cambist.db.models import GasStation, OutboundIntent, OutboundSlot, OutboundTx
from cambist.db.structs import AnyRow, columns_of, literally, to_struct
from cambist.domain.intents import FACTS, STAKING, AskedBy, IntentKind
from cambist.domain.money import format_units
from cambist.plugin import ChainInfo, Units
from cambist.ports import Ids
from cambist.services.accounting.ledger import PLATFORM, Account, Movement, Purpose, asset_key
from cambist.services.addresses.wallets import gas_station
from cambist.services.chain_scope import ChainScope
from cambist.services.errors import ConflictError, InvalidError, UnavailableError
from cambist.services.idempotency import Made, choose_key
from cambist.services.listing import ALWAYS, Listed, ListOf, Part, Period, read_list
from cambist.services.pricing.quotes import read_units
from cambist.services.sending.handler import IntentUpdate, MovingHandler
from cambist.services.sending.intents import internal_intent, is_coming, submit

from .gas_stations import MODE, SCOPE

StakeAction: TypeAlias = Literal["stake", "unstake", "withdraw"]
"""``unstake`` begins the chain's waiting time, ``withdraw`` takes back what has waited."""

OWN_ID_CHARS: Final = 26

KINDS: Final = {cast("StakeAction", FACTS[kind].action): kind for kind in STAKING}


class StakeRequest(Struct, frozen=True, kw_only=True):
    """What the operator asked for, and what became of it: ``state`` and ``reason`` are the intent's."""

    reference: str
    chain: str
    action: StakeAction
    units: Units
    state: str
    reason: str | None
    tx_id: str | None
    created_at: datetime
    finished_at: datetime | None


async def request_stake(  # noqa: PLR0913, PLR0917  what, where and how much
    conn: AsyncConnection,
    ids: Ids,
    info: ChainInfo,
    action: StakeAction,
    units: Units | None,
    now: datetime,
    *,
    key: str | None = None,
) -> Made[str]:
    """Ask for a change of the stake, and return its reference. ``units`` is None for all that can be withdrawn.

    The same key asks once for all time: a repetition returns the first change, whatever became of it.

    Judged by what the worker saw last, which must be later than the last change. All is withdrawn or nothing: chains
    need not offer less, and what they give back would differ from what is booked. Raises InvalidError, ConflictError,
    UnavailableError.
    """
    own = _own_id(choose_key(None, key)) or ids.new("stk")
    station = await gas_station(conn, info.family, MODE)
    seen = select(GasStation).where(GasStation.mode == MODE, GasStation.chain == info.id)
    row = (await conn.execute(seen)).one_or_none()
    if station is None or row is None:
        raise UnavailableError("CHAIN_UNAVAILABLE", f"The worker has not seen the gas station of {info.id} yet.")
    if row.staked is None:
        raise InvalidError("CHAIN_WITHOUT_STAKES", f"Nothing can be staked on {info.id}.")
    kind, chain_scope = KINDS[action], ChainScope(info=info, scope=SCOPE, mode=MODE)
    is_changing = [await is_coming(conn, chain_scope, station.pk, other) for other in STAKING]
    # After that has waited for its turn: a twin that was sent while the first was being asked for is the same change.
    if key is not None and (before := await _find_asked(conn, own, info, action, units)) is not None:
        return Made(before, replayed=True)
    if any(is_changing):
        raise ConflictError("STAKE_CHANGING", f"A change of the stake on {info.id} is under way already.")
    changed = (
        OutboundIntent.recipient_address_pk == station.pk,
        OutboundIntent.chain == info.id,
        OutboundIntent.scope == SCOPE,
        OutboundIntent.kind.in_(STAKING),
        OutboundIntent.finished_at > row.checked_at,
    )
    if await conn.scalar(select(exists().where(*changed))):
        text = f"The stake on {info.id} has just changed; the worker looks at it again within half a minute."
        raise ConflictError("STAKE_CHANGING", text)
    intent = internal_intent(
        kind,
        own,
        chain_scope,
        merchant_pk=None,
        source_pk=station.pk,
        recipient=station,
        units=_wanted(info, action, units, row),
        asked_by=AskedBy.OPERATOR,
    )
    await submit(conn, [intent], now)
    return Made(intent.reference, replayed=False)


def _wanted(info: ChainInfo, action: StakeAction, units: Units | None, row: AnyRow) -> Units:
    """Return how much is to be changed, None being all that can be. Raises InvalidError for more than there is."""
    room = {"stake": row.balance, "unstake": row.staked - row.lent, "withdraw": row.withdrawable}[action]
    wanted = Units(room if units is None else units)
    text = f"{format_units(room, info.native.decimals)} {info.native.symbol}"
    if not 0 < wanted <= room:
        raise InvalidError("STAKE_OUT_OF_RANGE", f"To {action} on {info.id} there is {text}.")
    if action == "withdraw" and wanted != room:
        raise InvalidError("STAKE_OUT_OF_RANGE", f"To withdraw on {info.id} takes back all that has waited: {text}.")
    return wanted


def _own_id(key: str | None) -> str | None:
    """Return what a change is called that was asked for under this key: so nothing else has to remember the key."""
    return None if key is None else f"stk_{hashlib.sha256(key.encode()).hexdigest()[:OWN_ID_CHARS]}"


async def _find_asked(
    conn: AsyncConnection, own: str, info: ChainInfo, action: StakeAction, units: Units | None
) -> str | None:
    """Return the reference of the change that is called so, or None. Raises ConflictError where it is another one."""
    table = OutboundIntent
    names = [f"{kind}:{own}" for kind in STAKING]  # as internal_intent() refers to it
    asked = select(table.reference, table.kind, table.chain, table.units).where(table.reference.in_(names))
    before = (await conn.execute(asked)).one_or_none()
    if before is None:
        return None
    if (before.kind, before.chain) != (KINDS[action], info.id) or units not in {None, before.units}:
        raise ConflictError("IDEMPOTENCY_KEY_REUSED", "This idempotency key was already used for another change.")
    reference: str = before.reference
    return reference


def read_amount(info: ChainInfo, action: StakeAction, text: str | None) -> Units | None:
    """Return an amount that somebody wrote, None for all of it. Raises InvalidError."""
    if text is not None:
        return read_units(text, info.native)
    if action != "withdraw":
        raise InvalidError.field("amount", f"is required to {action}")
    return None


_LIST = ListOf(OutboundIntent.id, OutboundIntent.created_at)


async def list_stake_requests(
    conn: AsyncConnection, chain: str | None, part: Part, period: Period = ALWAYS
) -> Listed[StakeRequest]:
    """Return one part of what was asked for."""
    where = [literally(OutboundIntent.kind, *STAKING)]
    filters, show = {OutboundIntent.chain: chain}, partial(to_struct, StakeRequest)
    return await read_list(conn, _requests(), show, _LIST, part, where=where, filters=filters, period=period)


async def read_stake_request(conn: AsyncConnection, reference: str) -> StakeRequest:
    """Return a change that was asked for."""
    return to_struct(StakeRequest, (await conn.execute(_requests().where(OutboundIntent.reference == reference))).one())


def _requests() -> Select[Any]:
    newest = (
        select(OutboundTx.tx_id)
        .join(OutboundSlot, OutboundSlot.id == OutboundTx.slot_pk)
        .where(OutboundSlot.intent_pk == OutboundIntent.id)
        .order_by(OutboundTx.id.desc())
        .limit(1)
        .scalar_subquery()
    )
    return select(*columns_of(StakeRequest, OutboundIntent, tx_id=newest))


class StakeHandler(MovingHandler):
    """Coin that becomes a stake, or a stake that becomes coin again; ``unstake`` moves nothing in the books."""

    async def moved(
        self,
        conn: AsyncConnection,  # noqa: ARG002
        updates: Sequence[IntentUpdate],
    ) -> Sequence[tuple[IntentUpdate, Movement]]:
        moved = []
        for one in updates:
            asset = asset_key(one.chain, None)
            coin, stake = (Account(PLATFORM, asset, own) for own in (Purpose.CUSTODY_GAS, Purpose.CUSTODY_STAKED))
            if one.kind == IntentKind.STAKE:
                moved.append((one, Movement(stake, coin, one.units)))
            elif one.kind == IntentKind.WITHDRAW_STAKE:
                moved.append((one, Movement(coin, stake, one.units)))
        return moved
