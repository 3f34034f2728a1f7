"""One chain's balances beside its books, at the height up to which the books were read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from cambist.db.engine import Database
from cambist.domain.money import format_units
from cambist.plugin import Chain, ChainError, Token, TxStatus
from cambist.services.ledger import PLATFORM

from .books import Books, Group, Holding, read_books
from .report import AddressLine, ChainReport, GroupLine, signed

ASKED_AT_ONCE = 500
ADDRESS_LINES_MAX = 100
ATTEMPTS = 3

_Key: TypeAlias = tuple[Group, str | None]
Held: TypeAlias = Mapping[Holding, int]


class Impossible(Exception):  # noqa: N818  nothing is wrong with the books as far as anybody knows
    """The chain could not be compared; the message says why."""


async def reconcile_chain(db: Database, chain: Chain) -> ChainReport:
    """Compare every balance of ours on a chain with the ledger. Changes nothing, and may run beside everything else.

    What is in a block already and not deep enough to be booked counts as in transit. Raises Impossible.
    """
    return _report(chain, *await look_up(db, chain))


async def look_up(db: Database, chain: Chain) -> tuple[Books, Held, Held]:
    """Return a chain's books, what addresses hold at their height, and what of that is in transit.

    Raises Impossible.
    """
    for _ in range(ATTEMPTS):
        books = await read_books(db, chain.info)
        if books is None:
            raise Impossible(f"{chain.info.id}: the worker has not read this chain yet")
        try:
            found = await _read_chain(chain, books)
        except ChainError as error:
            raise Impossible(f"{chain.info.id}: {error}") from error
        if found is not None:
            return books, *found
    raise Impossible(f"{chain.info.id}: its blocks changed with every look; try again in a minute")


async def _read_chain(chain: Chain, books: Books) -> tuple[Held, Held] | None:
    """Return what addresses hold at the height, and what of it is in transit; None where a reorg came in between."""
    wanted = _wanted(books)
    held: dict[Holding, int] = {}
    for first in range(0, len(wanted), ASKED_AT_ONCE):
        some = wanted[first : first + ASKED_AT_ONCE]
        pairs = [(books.places[row].address, _token(books, contract)) for row, contract in some]
        held |= dict(zip(some, await chain.balances(pairs, books.height), strict=True))
    statuses: list[TxStatus] = []
    for first in range(0, len(books.sendings), ASKED_AT_ONCE):
        some_txs = books.sendings[first : first + ASKED_AT_ONCE]
        statuses += await chain.transactions([sending.tx_id for sending in some_txs])
    async with chain.view() as view:
        # Balances were of the branch that the books are about only if that is the best one still.
        if (await view.block(books.height)).hash != books.block_hash:
            return None
    return held, _in_transit(books, statuses)


def _wanted(books: Books) -> Sequence[Holding]:
    """Return what to ask: every token that an address had, the native coin, and on wallets all that anybody had.

    A token that nobody ever had is left out: a test network lacks most of those that are listed, and an endpoint
    that is asked for one counts as faulty.
    """
    wanted = {*books.detected, *books.moved}
    every = {None, *(contract for _, contract in (*wanted, *books.booked))}
    for row, place in books.places.items():
        contracts = {None} if place.group[1] == "deposits" else every
        wanted |= {(row, contract) for contract in contracts}
    return sorted(((row, contract) for row, contract in wanted if row in books.places), key=_order)


def _order(holding: Holding) -> tuple[int, str]:
    return holding[0], holding[1] or ""


def _token(books: Books, contract: str | None) -> Token:
    symbol, decimals = books.names.get(contract, (contract or "", 0))
    return Token(symbol=symbol, contract=contract, decimals=decimals, label=symbol)


def _in_transit(books: Books, statuses: Sequence[TxStatus]) -> Held:
    """Return what the ledger does not say yet, or still says, of what stands in blocks up to the height."""
    transit: defaultdict[Holding, int] = defaultdict(int, books.detected)
    for sending, status in zip(books.sendings, statuses, strict=True):
        if status.block is None or status.block.height > books.height:
            continue
        if status.state == "succeeded":
            transit[sending.source_row, sending.contract] -= sending.units
            if sending.recipient_row is not None:
                transit[sending.recipient_row, sending.contract] += sending.units
        transit[sending.source_row, None] -= (status.fee or 0) if sending.pays_fee else 0
    for undone in books.undone:
        sending = undone.sending
        transit[sending.source_row, sending.contract] += sending.units
        if sending.recipient_row is not None:
            transit[sending.recipient_row, sending.contract] -= sending.units
        transit[sending.source_row, None] += undone.fee
    return transit


def _report(chain: Chain, books: Books, held: Held, transit: Held) -> ChainReport:
    on_chain = _by_group(books, held)
    moving = _by_group(books, transit)
    keys = sorted({*on_chain, *moving, *books.booked}, key=lambda key: (key[0], key[1] or ""))
    lines = []
    for key in keys:
        amounts = on_chain.get(key, 0), books.booked.get(key, 0), moving.get(key, 0)
        if any(amounts):
            lines.append(_line(books, key, amounts, held, transit))
    return ChainReport(
        chain=chain.info.id,
        height=books.height,
        block_hash=books.block_hash,
        addresses_asked=len({row for row, _ in held}),
        groups=lines,
    )


def _by_group(books: Books, units: Held) -> Mapping[_Key, int]:
    sums: defaultdict[_Key, int] = defaultdict(int)
    for (row, contract), amount in units.items():
        sums[books.places[row].group, contract] += amount
    return sums


def _line(books: Books, key: _Key, amounts: tuple[int, int, int], held: Held, transit: Held) -> GroupLine:
    on_chain, booked, moving = amounts
    (merchant_row, group), contract = key
    symbol, decimals = books.names.get(contract, (contract or "", 0))
    difference = on_chain - booked - moving
    return GroupLine(
        merchant_id=None if merchant_row == PLATFORM else books.merchants.get(merchant_row, f"merchant {merchant_row}"),
        group=group,
        token=symbol,
        contract=contract,
        on_chain=format_units(on_chain, decimals),
        booked=format_units(booked, decimals),
        in_transit=signed(moving, decimals),
        difference=signed(difference, decimals),
        addresses=_addresses(books, key, held, transit, decimals) if difference and group == "deposits" else (),
    )


def _addresses(books: Books, key: _Key, held: Held, transit: Held, decimals: int) -> Sequence[AddressLine]:
    """Return the addresses of a group that hold something else than their own deposits: where to look first."""
    group, contract = key
    lines: list[AddressLine] = []
    for (row, token), units in held.items():
        if token != contract or books.places[row].group != group:
            continue
        expected = books.settled.get((row, token), 0) + transit.get((row, token), 0)
        if units != expected and len(lines) < ADDRESS_LINES_MAX:
            lines.append(
                AddressLine(
                    address=books.places[row].address,
                    on_chain=format_units(units, decimals),
                    expected=format_units(expected, decimals),
                )
            )
    return lines
