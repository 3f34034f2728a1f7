"""One chain's balances beside its books, group by group, and what differs, for people and for programs."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import structlog
from msgspec import Struct
from sqlalchemy.exc import SQLAlchemyError

from cambist.db.engine import Database
from cambist.domain.money import format_units
from cambist.plugin import Chain
from cambist.services.accounting.ledger import PLATFORM

from .balances import Held, Pause, a_moment, look_up
from .books import Books, Group, Impossible

ADDRESS_LINES_MAX = 100
POLLS_MAX = 3

log = structlog.get_logger(__name__)

_Key: TypeAlias = tuple[Group, str | None]


class AddressLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """An address that holds something else than what its own deposits leave there."""

    address: str
    on_chain: str
    expected: str


class GroupLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """One token of one group of addresses: a merchant's ``deposits`` or ``wallet``, or the platform's ``gas``.

    ``between_chains`` is no address: of it, ``on_chain`` is what bridges have taken, by deposits that stand on this
    chain, and have neither paid out on another nor given back.

    ``booked`` is what the ledger says, ``in_transit`` what it will say of blocks that are read but not deep enough
    yet; together they should be what is ``on_chain``. ``addresses`` is there where they are not.
    """

    merchant_id: str | None
    group: str
    token: str
    contract: str | None
    on_chain: str
    booked: str
    in_transit: str
    difference: str
    addresses: Sequence[AddressLine] = ()

    @property
    def agrees(self) -> bool:
        return self.difference == "0"


class ChainReport(Struct, frozen=True, kw_only=True, rename="camel"):
    """One chain, at one height."""

    chain: str
    height: int
    block_hash: str
    addresses_asked: int
    groups: Sequence[GroupLine]

    @property
    def differences(self) -> Sequence[GroupLine]:
        return [group for group in self.groups if not group.agrees]


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


async def compare_chain(db: Database, chain: Chain) -> ChainReport:
    """Do as ``reconcile_chain`` where other chains want their turn: what its plugin fails with is Impossible, too."""
    try:
        return await reconcile_chain(db, chain)
    except (Impossible, SQLAlchemyError):  # the latter is the database's, without which no chain can be compared
        raise
    except Exception as error:  # a plugin may raise anything
        if isinstance(error, OSError):  # its own, or the database's, which then raises here
            async with db.autocommit() as conn:
                await conn.exec_driver_sql("SELECT 1")
        log.exception("chain_not_compared", chain=chain.info.id)
        raise Impossible(f"The plugin of {chain.info.id} failed with {type(error).__name__}.") from error


def _differences(report: ChainReport) -> Sequence[tuple[str | None, str, str | None, str]]:
    return [(line.merchant_id, line.group, line.contract, line.difference) for line in report.differences]


def _report(chain: Chain, books: Books, held: Held, transit: Held) -> ChainReport:
    on_chain = {**_by_group(books, held), **books.bridged}
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
        in_transit=_signed(moving, decimals),
        difference=_signed(difference, decimals),
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


def _signed(units: int, decimals: int) -> str:
    """Write a difference with its sign; zero has none."""
    return f"+{format_units(units, decimals)}" if units > 0 else format_units(units, decimals)


def as_text(report: ChainReport) -> Iterator[str]:
    """Yield lines for a person: a summary, then every difference, then what is on its way."""
    found = report.differences
    verdict = "no difference" if not found else f"{len(found)} differences" if len(found) > 1 else "1 difference"
    yield (
        f"{report.chain}: {verdict} at height {report.height}"
        f" ({len(report.groups)} balances of {report.addresses_asked} addresses)"
    )
    for line in found:
        yield f"  ✗ {_name(line)}: {line.on_chain} on the chain, {_expected(line)}: {line.difference}"
        for address in line.addresses:
            yield f"      {address.address}: {address.on_chain} on the chain, {address.expected} from its deposits"
    for line in report.groups:
        if line.agrees and line.in_transit != "0":
            yield f"  ✓ {_name(line)}: {line.on_chain} on the chain, {_expected(line)}"


def _name(line: GroupLine) -> str:
    return f"{line.merchant_id or 'platform'} {line.group.replace('_', ' ')} {line.token}"


def _expected(line: GroupLine) -> str:
    return f"{line.booked} in the books" + (f" and {line.in_transit} in transit" if line.in_transit != "0" else "")
