"""What the addresses of ours hold on a chain at one height, and what the books say of that height.

Where the chain tells the past, the height is the one up to which the worker has read it. Where it tells only what
is final now, many addresses cannot be asked at one height: each is asked at the height that is final then, and again
if anything has moved there since, until all that was told still holds at the last of these heights.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from cambist.db.engine import Database
from cambist.plugin import Chain, ChainError, LendingChain, StateUnavailableError, Token, TxStatus
from cambist.services.receiving.deposits import opening_balances

from .books import MODE, Books, Holding, Impossible, read_books

ASKED_AT_ONCE = 500
ATTEMPTS = 3
ROUNDS_MAX = 300
PAUSE_S = 1.0

_STAKE_CHANGES = "its stake is being changed"

Held: TypeAlias = Mapping[Holding, int]
Pause: TypeAlias = Callable[[], Awaitable[None]]


async def a_moment() -> None:
    """Wait until chain and worker have gone on a little."""
    await asyncio.sleep(PAUSE_S)


async def look_up(db: Database, chain: Chain, pause: Pause = a_moment) -> tuple[Books, Held, Held]:
    """Return a chain's books, what addresses hold at their height, and what of that is in transit.

    Raises Impossible.
    """
    try:
        try:
            return await _at_the_cursor(db, chain, pause)
        except StateUnavailableError:
            return await _at_what_is_final(db, chain, pause)
    except ChainError as error:
        raise Impossible(f"{chain.info.id}: {error}") from error


async def _at_the_cursor(db: Database, chain: Chain, pause: Pause) -> tuple[Books, Held, Held]:
    replaced = 0
    for _ in range(ROUNDS_MAX):
        books = await read_books(db, chain.info)
        wanted = _wanted(books)
        held: dict[Holding, int] = {}
        for first in range(0, len(wanted), ASKED_AT_ONCE):
            some = wanted[first : first + ASKED_AT_ONCE]
            held |= await _balances(chain, books, some, books.height)
        statuses = await _statuses(chain, books)
        stakes = await _stakes(chain, books, statuses)
        async with chain.view() as view:
            # Balances were of the branch that the books are about only if that is the best one still.
            agreed = (await view.block(books.height)).hash == books.block_hash
        replaced += not agreed
        if replaced == ATTEMPTS:
            raise Impossible(f"{chain.info.id}: its blocks changed with every poll; try again in a minute")
        if not agreed:
            continue
        if stakes is not None:
            return books, _with_stakes(held, stakes), _in_transit(books, statuses)
        await pause()
    raise Impossible(f"{chain.info.id}: {_STAKE_CHANGES}; try again in a minute")


class _Told(Struct, frozen=True):
    """What an address held, and the height at which it was asked for."""

    units: int
    height: int


async def _at_what_is_final(db: Database, chain: Chain, pause: Pause) -> tuple[Books, Held, Held]:
    told: dict[Holding, _Told] = {}
    why = "the worker has not read and opened it as far as it is final"
    for _ in range(ROUNDS_MAX):
        height, block_hash = await _final(chain)
        heights = [one.height for one in told.values()] or [height]
        books = await read_books(db, chain.info, height, since=min(heights))
        async with db.transaction() as conn:
            is_open = await opening_balances.open_station(conn, chain.info, MODE) is not None
        if not (max(heights) <= height <= books.cursor[0] and books.block_hash == block_hash and is_open):
            await pause()
            continue
        statuses = await _statuses(chain, books)
        moved = _last_moved(books, statuses)
        wanted = _wanted(books)
        stale = [one for one in wanted if one not in told or moved.get(one, 0) > told[one].height]
        if stale:
            why = "its balances changed with every poll"
            await _ask(chain, books, stale, told, pause)
            continue
        stakes = await _stakes(chain, books, statuses)
        if stakes is not None:
            held = {one: told[one].units for one in wanted}
            return books, _with_stakes(held, stakes), _in_transit(books, statuses)
        why = _STAKE_CHANGES
        await pause()
    raise Impossible(f"{chain.info.id}: {why}; try again in a minute")


async def _final(chain: Chain) -> tuple[int, str]:
    async with chain.view() as view:
        height = (await view.head()).finalized_height
        if height is None:
            raise Impossible(f"{chain.info.id}: it tells neither what was so at a height nor which one is final")
        return height, (await view.block(height)).hash


async def _ask(chain: Chain, books: Books, stale: Sequence[Holding], told: dict[Holding, _Told], pause: Pause) -> None:
    """Ask in parts, smaller ones where the chain goes on while it is asked."""
    size, first, failures = ASKED_AT_ONCE, 0, 0
    while first < len(stale):
        some = stale[first : first + size]
        height, _ = await _final(chain)
        try:
            found = await _balances(chain, books, some, height)
        except StateUnavailableError:
            failures += 1
            if failures > ROUNDS_MAX:
                raise
            if size == 1:
                await pause()
            size = max(1, size // 2)
            continue
        told |= {one: _Told(units, height) for one, units in found.items()}
        first += size


def _last_moved(books: Books, statuses: Sequence[TxStatus]) -> Mapping[Holding, int]:
    """Return when each holding changed last, up to the books' height."""
    moved = dict(books.last_moved)
    for sending, status in zip(books.sendings, statuses, strict=True):
        if status.block is None or status.block.height > books.height:
            continue
        holdings = [(sending.source_pk, sending.contract), (sending.source_pk, None)]
        if sending.recipient_pk is not None:
            holdings.append((sending.recipient_pk, sending.contract))
        for holding in holdings:
            moved[holding] = max(moved.get(holding, 0), status.block.height)
    return moved


async def _balances(chain: Chain, books: Books, holdings: Sequence[Holding], height: int) -> Held:
    pairs = [(books.addresses[address_pk].address, _token(books, contract)) for address_pk, contract in holdings]
    return dict(zip(holdings, await chain.balances(pairs, height), strict=True))


async def _statuses(chain: Chain, books: Books) -> Sequence[TxStatus]:
    statuses: list[TxStatus] = []
    for first in range(0, len(books.sendings), ASKED_AT_ONCE):
        some = books.sendings[first : first + ASKED_AT_ONCE]
        statuses += await chain.transactions([sending.tx_id for sending in some])
    return statuses


async def _stakes(chain: Chain, books: Books, statuses: Sequence[TxStatus]) -> Held | None:
    """Return what gas stations have staked, which chains tell only as of now; None while that is being changed."""
    if not isinstance(chain, LendingChain):
        return {}
    for sending, status in zip(books.sendings, statuses, strict=True):
        if sending.moves_stake and (status.block is None or status.block.height > books.height):
            return None
    if any(one.sending.moves_stake for one in books.undone):
        return None
    stations = {pk: one.address for pk, one in books.addresses.items() if one.group[1] == "gas"}
    return {(pk, None): (await chain.stake(address)).total for pk, address in stations.items()}


def _with_stakes(held: Held, stakes: Held) -> Held:
    return {**held, **{one: held.get(one, 0) + units for one, units in stakes.items()}}


def _wanted(books: Books) -> Sequence[Holding]:
    """Return what to ask: every token that an address had, the native coin, and on wallets all that anybody had.

    A token that nobody ever had is left out: a test network lacks most of those that are listed, and an endpoint
    that is asked for one counts as faulty.
    """
    wanted = {*books.waiting, *books.moved}
    every = {None, *(contract for _, contract in (*wanted, *books.booked))}
    for address_pk, address in books.addresses.items():
        contracts = {None} if address.group[1] == "deposits" else every
        wanted |= {(address_pk, contract) for contract in contracts}
    return sorted((one for one in wanted if one[0] in books.addresses), key=lambda one: (one[0], one[1] or ""))


def _token(books: Books, contract: str | None) -> Token:
    symbol, decimals = books.names.get(contract, (contract or "", 0))
    return Token(symbol=symbol, contract=contract, decimals=decimals, label=symbol)


def _in_transit(books: Books, statuses: Sequence[TxStatus]) -> Held:
    """Return what the ledger does not say yet, or still says, of what stands in blocks up to the height."""
    transit: defaultdict[Holding, int] = defaultdict(int, books.waiting)
    for sending, status in zip(books.sendings, statuses, strict=True):
        if status.block is None or status.block.height > books.height:
            continue
        if status.state == "succeeded":
            transit[sending.source_pk, sending.contract] -= sending.units
            if sending.recipient_pk is not None:
                transit[sending.recipient_pk, sending.contract] += sending.units
        transit[sending.source_pk, None] -= (status.fee or 0) if sending.pays_fee else 0
    for undone in books.undone:
        sending = undone.sending
        transit[sending.source_pk, sending.contract] += sending.units
        if sending.recipient_pk is not None:
            transit[sending.recipient_pk, sending.contract] -= sending.units
        transit[sending.source_pk, None] += undone.fee
    return transit
