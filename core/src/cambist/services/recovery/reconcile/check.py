"""One chain's balances beside its books, group by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from cambist.db.engine import Database
from cambist.domain.money import format_units
from cambist.plugin import Chain
from cambist.services.accounting.ledger import PLATFORM

from .balances import Held, Pause, a_moment, look_up
from .books import Books, Group
from .report import AddressLine, ChainReport, GroupLine, signed

ADDRESS_LINES_MAX = 100
POLLS_MAX = 3

_Key: TypeAlias = tuple[Group, str | None]


async def reconcile_chain(db: Database, chain: Chain, *, pause: Pause = a_moment) -> ChainReport:
    """Compare every balance of ours on a chain with the ledger. Changes nothing, and may run beside everything else.

    What is in a block already and not deep enough to be booked counts as in transit. A difference is told when it is
    seen again: an endpoint that has not heard of a transaction yet makes one that is none. Raises Impossible.
    """
    report = _report(chain, *await look_up(db, chain, pause))
    for _ in range(POLLS_MAX - 1):
        if not report.differences:
            break
        seen = _differences(report)
        await pause()
        report = _report(chain, *await look_up(db, chain, pause))
        if _differences(report) == seen:
            break
    return report


def _differences(report: ChainReport) -> Sequence[tuple[str | None, str, str | None, str]]:
    return [(line.merchant_id, line.group, line.contract, line.difference) for line in report.differences]


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
        block_hash=books.block_hash or "",
        addresses_asked=len({address_pk for address_pk, _ in held}),
        groups=lines,
    )


def _by_group(books: Books, units: Held) -> Mapping[_Key, int]:
    sums: defaultdict[_Key, int] = defaultdict(int)
    for (address_pk, contract), amount in units.items():
        sums[books.addresses[address_pk].group, contract] += amount
    return sums


def _line(books: Books, key: _Key, amounts: tuple[int, int, int], held: Held, transit: Held) -> GroupLine:
    on_chain, booked, moving = amounts
    (merchant_pk, group), contract = key
    symbol, decimals = books.names.get(contract, (contract or "", 0))
    difference = on_chain - booked - moving
    return GroupLine(
        merchant_id=None if merchant_pk == PLATFORM else books.merchants.get(merchant_pk, f"merchant {merchant_pk}"),
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
    for (address_pk, token), units in held.items():
        if token != contract or books.addresses[address_pk].group != group:
            continue
        expected = books.uncollected.get((address_pk, token), 0) + transit.get((address_pk, token), 0)
        if units != expected and len(lines) < ADDRESS_LINES_MAX:
            lines.append(
                AddressLine(
                    address=books.addresses[address_pk].address,
                    on_chain=format_units(units, decimals),
                    expected=format_units(expected, decimals),
                )
            )
    return lines
