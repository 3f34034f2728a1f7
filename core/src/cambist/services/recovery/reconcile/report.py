"""What a comparison of chain and books found, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from cambist.domain.money import format_units


class AddressLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """An address that holds something else than what its own deposits leave there."""

    address: str
    on_chain: str
    expected: str


class GroupLine(Struct, frozen=True, kw_only=True, rename="camel"):
    """One token of one group of addresses: a merchant's ``deposits`` or ``wallet``, or the platform's ``gas``.

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
        """Whether there is no difference."""
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
        """Return the groups that do not agree."""
        return [group for group in self.groups if not group.agrees]


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
    return f"{line.merchant_id or 'platform'} {line.group} {line.token}"


def _expected(line: GroupLine) -> str:
    return f"{line.booked} in the books" + (f" and {line.in_transit} in transit" if line.in_transit != "0" else "")


def signed(units: int, decimals: int) -> str:
    """Write a difference with its sign; zero has none."""
    return f"+{format_units(units, decimals)}" if units > 0 else format_units(units, decimals)
