"""What every provider of swaps promises, and bridges as well; readers are held to what providers build."""

from __future__ import annotations

import asyncio
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from random import Random
from typing import ClassVar, Generic, TypeVar

import pytest
from msgspec import structs

from cambist.plugin import (
    Call,
    CallReader,
    ChainInfo,
    ChainToken,
    ExchangeEffects,
    ExchangeProvider,
    ExchangeRefusedError,
    ExchangeRequest,
    ProviderUnavailableError,
    SwapProvider,
    Units,
    UnreadablePayloadError,
)
from cambist.testing.blocking import blocking_noticed
from cambist.testing.guard import Conformance

MUTATIONS_COUNT = 200
RECURSION_MAX = 3_000
"""Some codecs raise the interpreter's limit a hundredfold, and then a deep recursion ends the process."""

Provider = TypeVar("Provider", bound=ExchangeProvider)


class ExchangeHarness(ABC, Generic[Provider]):
    """What a provider's author supplies: the provider, its reader, and a service behind them that the tests control.

    ``chains`` are by id. ``requests`` are at least two that the service fills at a slippage of one percent, of
    different pairs, to a recipient that is not the sender. ``unsupported`` is a pair that the provider knows it does
    not serve. ``lies`` name what the service can be made to say falsely; the more, the better.
    """

    provider: Provider
    reader: CallReader
    chains: Mapping[str, ChainInfo]
    requests: Sequence[ExchangeRequest]
    unsupported: tuple[ChainToken, ChainToken]
    lies: ClassVar[Sequence[str]] = ()

    @abstractmethod
    def outage(self) -> AbstractAsyncContextManager[None]:
        """Make the service unreachable until the context ends."""

    @abstractmethod
    def lying(self, lie: str) -> AbstractAsyncContextManager[None]:
        """Have the service say one of ``lies`` until the context ends, in a call that it builds."""


class ExchangeConformance(Conformance):
    """What providers of both kinds promise."""

    async def test_a_provider_has_a_name(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """It is shown to merchants."""
        assert re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,31}", harness.provider.name)

    async def test_it_knows_which_pairs_it_serves(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """Without asking anybody: what it does not serve, it is never asked about."""
        assert len({(str(one.sells), str(one.buys)) for one in harness.requests}) >= 2
        async with harness.outage():
            for one in harness.requests:
                assert harness.provider.supports(one.sells, one.buys)
                assert not harness.provider.supports(one.sells, one.sells)
            assert not harness.provider.supports(*harness.unsupported)

    async def test_a_quote_is_within_its_slippage(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """The least is less than what is expected by the slippage at most; rounded down by a unit at most."""
        for one in harness.requests:
            quote = await harness.provider.quote(one)
            assert quote.units > 0
            assert 0 < quote.units_min <= quote.units
            assert (quote.units_min + 1) * 10_000 >= quote.units * (10_000 - one.slippage_bps)
            assert all(fee.name and fee.units >= 0 for fee in quote.fees)

    async def test_without_slippage_the_least_is_what_is_expected(
        self, harness: ExchangeHarness[ExchangeProvider]
    ) -> None:
        """Nothing else makes it less."""
        for one in harness.requests:
            quote = await harness.provider.quote(structs.replace(one, slippage_bps=0))
            assert quote.units == quote.units_min

    async def test_several_can_be_asked_at_once(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """Answers do not get mixed up."""
        alone = [(await harness.provider.quote(one)).units for one in harness.requests]
        together = await asyncio.gather(*(harness.provider.quote(one) for one in [*harness.requests] * 2))
        assert [quote.units for quote in together] == alone * 2

    async def test_nobody_else_waits_while_it_is_asked(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """Every merchant and webhook of a process shares its event loop: whoever blocks it stops them all."""
        with blocking_noticed() as blocking:
            await built(harness, harness.requests[0])
        assert blocking == []

    async def test_a_call_reads_as_what_was_asked_for(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """By its own reader: what it takes, what it gives at least, to whom and where; native coin goes along."""
        for one in harness.requests:
            call, units_min = await built(harness, one)
            effects = read(harness, one, call)
            assert effects is not None
            assert (effects.sold_contract, effects.sold) == (one.sells.token.contract, one.units)
            assert (effects.chain, effects.bought_contract) == (one.buys.chain.id, one.buys.token.contract)
            assert effects.recipient == one.recipient
            assert effects.bought_min >= units_min
            assert call.value == (one.units if one.sells.token.is_native else 0)
            if not one.sells.token.is_native:
                assert effects.spender in harness.reader.spenders(one.sells.chain)
            assert effects.refund_to in {None, one.sender}

    async def test_reading_changes_nothing(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """The same bytes read the same for ever, also while nobody answers."""
        for one in harness.requests:
            call, _ = await built(harness, one)
            first = read(harness, one, call)
            async with harness.outage():
                assert first == read(harness, one, call) != None  # noqa: E711  neither is None
            assert harness.reader.spenders(one.sells.chain) == harness.reader.spenders(one.sells.chain) != frozenset()

    async def test_a_call_of_another_contract_is_not_its_to_read(
        self, harness: ExchangeHarness[ExchangeProvider]
    ) -> None:
        """Whatever the bytes are."""
        for one in harness.requests:
            call, _ = await built(harness, one)
            assert read(harness, one, structs.replace(call, to_address=one.sender)) is None

    async def test_native_coin_that_goes_along_is_what_is_sold(
        self, harness: ExchangeHarness[ExchangeProvider]
    ) -> None:
        """One unit more or less is another call, or none."""
        for one in harness.requests:
            call, _ = await built(harness, one)
            for value in {call.value + 1, max(0, call.value - 1)} - {call.value}:
                found = told(harness, one, structs.replace(call, value=Units(value)))
                assert found is None or (found.sold_contract is None and found.sold == value)

    async def test_who_gets_the_output_is_read_from_the_call(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """Another recipient in the bytes is another recipient in the reading, or there is none."""
        for one in harness.requests:
            call, _ = await built(harness, one)
            other, _ = await built(harness, structs.replace(one, recipient=one.sender))
            found = read(harness, one, other)
            assert found is not None
            assert found.recipient == one.sender
            assert call.data != other.data

    async def test_changed_bytes_are_refused_or_read_as_they_are(
        self, harness: ExchangeHarness[ExchangeProvider]
    ) -> None:
        """Cut, longer, or with a byte changed anywhere: never an error of the reader's own."""
        random = Random(5)
        for one in harness.requests:
            call, _ = await built(harness, one)
            for data in _mutations(call.data, random):
                told(harness, one, structs.replace(call, data=data))
            for data in (call.data[:-1], call.data + b"\0", call.data[:4], b"", b"\xff" * 100_000):
                assert told(harness, one, structs.replace(call, data=data)) is None

    async def test_what_cannot_be_had_is_refused(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """Ten times as much as is quoted is no call that gives less."""
        for one in harness.requests:
            quote = await harness.provider.quote(one)
            with pytest.raises(ExchangeRefusedError):
                await harness.provider.build(one, Units(quote.units * 10))

    async def test_an_outage_says_so_and_passes(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """ProviderUnavailableError while nobody answers, and quotes and calls again afterwards."""
        for one in harness.requests:
            # Another amount than any other test's: a quote that is remembered may outlive an outage.
            asked = structs.replace(one, units=Units(one.units + 1))
            async with harness.outage():
                with pytest.raises(ProviderUnavailableError):
                    await harness.provider.quote(asked)
                with pytest.raises(ProviderUnavailableError):
                    await harness.provider.build(asked, Units(1))
            assert read(harness, asked, (await built(harness, asked))[0]) is not None

    async def test_a_lie_of_the_service_is_never_passed_on(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """A call that is not what was asked for is an ExchangeError."""
        assert harness.lies
        for lie in harness.lies:
            for one in harness.requests:
                quote = await harness.provider.quote(one)
                async with harness.lying(lie):
                    with pytest.raises((ExchangeRefusedError, ProviderUnavailableError)):
                        await harness.provider.build(one, quote.units_min)

    async def test_the_interpreter_is_left_as_it_was(self, harness: ExchangeHarness[ExchangeProvider]) -> None:
        """Libraries that it imports may not raise the recursion limit for everybody."""
        for one in harness.requests:
            read(harness, one, (await built(harness, one))[0])
        assert sys.getrecursionlimit() <= RECURSION_MAX


class SwapConformance(ExchangeConformance):
    """Subclass it, and give the fixture ``harness``, which yields an ExchangeHarness of a SwapProvider."""

    @pytest.fixture
    async def harness(self) -> ExchangeHarness[SwapProvider]:
        """Return the provider under the kit's control."""
        raise NotImplementedError

    async def test_a_swap_stays_on_its_chain(self, harness: ExchangeHarness[SwapProvider]) -> None:
        """In one transaction, so that nothing comes back later."""
        for one in harness.requests:
            assert one.sells.chain.id == one.buys.chain.id
            effects = read(harness, one, (await built(harness, one))[0])
            assert effects is not None
            assert (effects.refund_to, effects.chain) == (None, one.sells.chain.id)


async def built(harness: ExchangeHarness[Provider], request: ExchangeRequest) -> tuple[Call, Units]:
    """Return a call and the least output that it was asked for."""
    quote = await harness.provider.quote(request)
    return await harness.provider.build(request, quote.units_min), quote.units_min


def read(harness: ExchangeHarness[Provider], request: ExchangeRequest, call: Call) -> ExchangeEffects | None:
    """Return what the reader tells of a call by the request's sender."""
    return harness.reader.read(request.sells.chain, request.sender, call, harness.chains)


def told(harness: ExchangeHarness[Provider], request: ExchangeRequest, call: Call) -> ExchangeEffects | None:
    """Return the same; None, too, for what cannot be read."""
    try:
        return read(harness, request, call)
    except UnreadablePayloadError:
        return None


def _mutations(data: bytes, random: Random) -> Sequence[bytes]:
    found = []
    for _ in range(MUTATIONS_COUNT):
        changed = bytearray(data)
        for _ in range(random.randint(1, 3)):
            changed[random.randrange(len(changed))] = random.choice([0, 1, 0xFF, random.randrange(256)])
        found.append(bytes(changed))
    return found
