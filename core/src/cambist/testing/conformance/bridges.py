"""What every bridge promises beside what all providers do: deposits, fills and refunds, as its two chains show them."""

from __future__ import annotations

from abc import abstractmethod

import pytest
from msgspec import structs

from cambist.plugin import (
    BridgeDeposit,
    BridgeProvider,
    Call,
    ExchangeRequest,
    FoundLog,
    Log,
    LogQuery,
    ProviderUnavailableError,
    Receipt,
    Units,
)

from .exchanges import ExchangeConformance, ExchangeHarness, built, read


class BridgeHarness(ExchangeHarness[BridgeProvider]):
    """The same for a bridge, with what its two chains would show."""

    @abstractmethod
    def receipt(self, request: ExchangeRequest, call: Call) -> Receipt:
        """Return the receipt of a transaction that made this call and succeeded."""

    @abstractmethod
    def fill_log(self, request: ExchangeRequest, receipt: Receipt, *, recipient: str | None = None) -> FoundLog:
        """Return the log that fills the receipt's deposit, for another recipient where one is given."""

    @abstractmethod
    def refund_receipt(self, request: ExchangeRequest, receipt: Receipt, units: Units) -> Receipt:
        """Return the receipt of a transaction that refunds so many units to the request's sender.

        They are of the token in which the receipt's deposit goes back, and may be for more deposits than this one.
        """


class BridgeConformance(ExchangeConformance):
    """Subclass it, and give the fixture ``harness``, which yields a BridgeHarness."""

    @pytest.fixture
    async def harness(self) -> BridgeHarness:
        """Return the provider under the kit's control."""
        raise NotImplementedError

    async def test_a_bridge_says_until_when_and_to_whom_it_goes_back(self, harness: BridgeHarness) -> None:
        """In its quote and in its call: what nobody fills returns to who gave it."""
        for one in harness.requests:
            assert one.sells.chain.id != one.buys.chain.id
            assert (await harness.provider.quote(one)).fill_deadline is not None
            effects = read(harness, one, (await built(harness, one))[0])
            assert effects is not None
            assert effects.refund_to == one.sender
            assert effects.valid_until is not None

    async def test_a_deposit_is_read_from_its_receipt(self, harness: BridgeHarness) -> None:
        """As the call says; a receipt that failed, or has other logs, tells of none."""
        for one in harness.requests:
            call, units_min = await built(harness, one)
            receipt = harness.receipt(one, call)
            deposit = harness.provider.deposit(one.sells.chain, receipt, harness.chains)
            assert deposit is not None
            effects = read(harness, one, call)
            assert effects is not None
            assert (deposit.tx_id, deposit.units, deposit.refund_to) == (receipt.tx_id, one.units, one.sender)
            assert (deposit.chain, deposit.contract) == (effects.chain, effects.bought_contract)
            assert (deposit.units_out, deposit.recipient) == (effects.bought_min, one.recipient)
            assert deposit.units_out >= units_min
            assert deposit.fill_deadline == effects.valid_until
            # Native coin may come back wrapped, and is known to before; a token comes back as it is.
            assert deposit.refund_contract == harness.provider.refund_contract(one.sells)
            assert one.sells.token.is_native or deposit.refund_contract == one.sells.token.contract
            for none in (
                structs.replace(receipt, logs=()),
                structs.replace(receipt, succeeded=False),
                structs.replace(receipt, logs=[structs.replace(log, address=one.sender) for log in receipt.logs]),
            ):
                assert harness.provider.deposit(one.sells.chain, none, harness.chains) is None

    async def test_a_fill_is_of_one_deposit(self, harness: BridgeHarness) -> None:
        """Found by its query, with what came; another deposit's, or one for somebody else, is none."""
        deposits = await _deposits(harness)
        for one, receipt, deposit in deposits:
            there, origin = one.buys.chain, one.sells.chain
            query = harness.provider.fill_query(there, deposit, origin, 5, 9)
            found = harness.fill_log(one, receipt)
            assert (query.first, query.last, query.address) == (5, 9, found.log.address)
            assert all(want in {None, have} for want, have in zip(query.topics, found.log.topics, strict=False))
            fill = harness.provider.fill(there, deposit, origin, found)
            assert fill is not None
            assert (fill.deposit_id, fill.tx_id) == (deposit.deposit_id, found.tx_id)
            assert fill.units >= deposit.units_out
            stolen = harness.fill_log(one, receipt, recipient=one.sender)
            assert harness.provider.fill(there, deposit, origin, stolen) is None
            elsewhere = structs.replace(found, log=structs.replace(found.log, address=one.sender))
            assert harness.provider.fill(there, deposit, origin, elsewhere) is None
            for other_request, other_receipt, _ in deposits:
                if other_request is not one:
                    other = harness.fill_log(other_request, other_receipt)
                    assert harness.provider.fill(there, deposit, origin, other) is None

    async def test_a_refund_is_what_goes_back_to_the_depositor(self, harness: BridgeHarness) -> None:
        """Found by its query, with the sum, for one deposit or several; nothing else that the chain shows is one."""
        deposits = await _deposits(harness)
        for one, receipt, deposit in deposits:
            here = one.sells.chain
            query = harness.provider.refund_query(here, deposit, 5, 9)
            assert (query.first, query.last) == (5, 9)
            for units in (one.units, Units(one.units * 2 + 1), Units(1)):
                refund = harness.refund_receipt(one, receipt, units)
                assert any(_finds(query, log) for log in refund.logs)
                assert harness.provider.refund(here, deposit, refund) == units
                assert harness.provider.deposit(here, refund, harness.chains) is None
            refund = harness.refund_receipt(one, receipt, one.units)
            for another in (
                structs.replace(deposit, refund_to=one.recipient),
                structs.replace(deposit, refund_contract=one.recipient),
                *(other for _, _, other in deposits if other.refund_contract != deposit.refund_contract),
            ):
                assert harness.provider.refund(here, another, refund) is None
            fills = [harness.fill_log(one, receipt).log, harness.fill_log(one, receipt, recipient=one.sender).log]
            for none in (
                structs.replace(refund, succeeded=False),
                structs.replace(refund, logs=()),
                structs.replace(refund, logs=tuple(structs.replace(log, address=one.sender) for log in refund.logs)),
                harness.refund_receipt(structs.replace(one, sender=one.recipient), receipt, one.units),
                receipt,
                *(structs.replace(refund, logs=(fill,)) for fill in fills),
            ):
                assert harness.provider.refund(here, deposit, none) is None

    async def test_what_the_service_says_of_a_deposit_is_pending_at_first(self, harness: BridgeHarness) -> None:
        """A server knows of a deposit some seconds later, and says nothing of it until then."""
        one = harness.requests[0]
        receipt = harness.receipt(one, (await built(harness, one))[0])
        deposit = harness.provider.deposit(one.sells.chain, receipt, harness.chains)
        assert deposit is not None
        assert (await harness.provider.status(one.sells.chain, deposit)).state == "pending"
        async with harness.outage():
            with pytest.raises(ProviderUnavailableError):
                await harness.provider.status(one.sells.chain, deposit)


async def _deposits(harness: BridgeHarness) -> list[tuple[ExchangeRequest, Receipt, BridgeDeposit]]:
    found = []
    for one in harness.requests:
        receipt = harness.receipt(one, (await built(harness, one))[0])
        deposit = harness.provider.deposit(one.sells.chain, receipt, harness.chains)
        assert deposit is not None
        found.append((one, receipt, deposit))
    return found


def _finds(query: LogQuery, log: Log) -> bool:
    if log.address != query.address or len(log.topics) < len(query.topics):
        return False
    return all(want in {None, have} for want, have in zip(query.topics, log.topics, strict=False))
