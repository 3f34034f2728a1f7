"""Providers of swaps and bridges, each broken in one way, by the test of the kit that catches it."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

import msgspec
from msgspec import structs

from cambist.plugin import ExchangeEffects, Quote, Units
from cambist.testing.memory.family import named_address
from tests.support.exchanges import ROUTER, FairReader, exchange_call
from tests.support.fair import RECIPIENT, FairBridge, FairBridgeHarness, FairSwapHarness, FairSwaps, FillData

BROKEN: dict[str, Callable[[], FairSwapHarness]] = {}


def caught_by(test: str) -> Callable[[type], type]:
    """Register a broken provider, or a reader, under the test that must catch it."""

    def register(broken: type) -> type:
        if issubclass(broken, FairReader):
            BROKEN[test] = lambda: _with_reader(broken())
        elif issubclass(broken, FairBridge):
            BROKEN[test] = lambda: FairBridgeHarness(broken)
        else:
            BROKEN[test] = lambda: FairSwapHarness(broken)
        return broken

    return register


def _with_reader(reader: FairReader) -> FairSwapHarness:
    harness = FairSwapHarness()
    harness.reader = reader
    return harness


@caught_by("test_a_provider_has_a_name")
class Nameless(FairSwaps):
    name = "My Swaps"


@caught_by("test_it_knows_which_pairs_it_serves")
class Eager(FairSwaps):
    def supports(self, sells, buys):
        return super().supports(sells, buys) or sells == buys


@caught_by("test_a_quote_is_within_its_slippage")
class Loose(FairSwaps):
    async def quote(self, request):
        quote = await super().quote(request)
        return structs.replace(quote, units_min=Units(quote.units // 2))


@caught_by("test_without_slippage_the_least_is_what_is_expected")
class Rounding(FairSwaps):
    async def quote(self, request) -> Quote:
        quote = await super().quote(request)
        return structs.replace(quote, units_min=Units(min(quote.units_min, quote.units - 1)))


@caught_by("test_several_can_be_asked_at_once")
class Muddled(FairSwaps):
    async def quote(self, request):
        self.asked = request
        await asyncio.sleep(0)
        return await super().quote(self.asked)


@caught_by("test_a_call_reads_as_what_was_asked_for")
class Miserly(FairSwaps):
    async def build(self, request, units_min):
        return await super().build(request, Units(units_min // 2))


@caught_by("test_reading_changes_nothing")
class Counting(FairReader):
    reads = 0

    def read(self, chain, sender, call, chains):
        self.reads += 1
        found = super().read(chain, sender, call, chains)
        return None if found is None else structs.replace(found, valid_until=self.reads)


@caught_by("test_a_call_of_another_contract_is_not_its_to_read")
class Greedy(FairReader):
    def read(self, chain, sender, call, chains):
        return super().read(chain, sender, structs.replace(call, to_address=ROUTER), chains)


@caught_by("test_native_coin_that_goes_along_is_what_is_sold")
class Careless(FairReader):
    def read(self, chain, sender, call, chains):
        try:
            said = msgspec.json.decode(call.data, type=ExchangeEffects)
        except msgspec.DecodeError:
            return super().read(chain, sender, call, chains)
        return super().read(chain, sender, structs.replace(call, value=exchange_call(said).value), chains)


@caught_by("test_who_gets_the_output_is_read_from_the_call")
class Deaf(FairReader):
    def read(self, chain, sender, call, chains):
        found = super().read(chain, sender, call, chains)
        return None if found is None else structs.replace(found, recipient=named_address("recipient"))


@caught_by("test_changed_bytes_are_refused_or_read_as_they_are")
class Fragile(FairReader):
    def read(self, chain, sender, call, chains):
        call.data.decode("ascii")
        return super().read(chain, sender, call, chains)


@caught_by("test_what_cannot_be_had_is_refused")
class Boastful(FairSwaps):
    async def build(self, request, units_min):
        return await super().build(request, min(units_min, (await self.quote(request)).units))


@caught_by("test_an_outage_says_so_and_passes")
class Offline(FairSwaps):
    async def quote(self, request):
        self.service.down, down = False, self.service.down
        try:
            return await super().quote(request)
        finally:
            self.service.down = down


@caught_by("test_a_lie_of_the_service_is_never_passed_on")
class Trusting(FairSwaps):
    async def build(self, request, units_min):
        lie, self.service.lie = self.service.lie, {}
        call = await super().build(request, units_min)
        self.service.lie = lie
        return self.service.built(self.reader.read(request.sells.chain, request.sender, call, {}))


@caught_by("test_the_interpreter_is_left_as_it_was")
class Recursive(FairReader):
    def read(self, chain, sender, call, chains):
        sys.setrecursionlimit(100_000)
        return super().read(chain, sender, call, chains)


@caught_by("test_a_swap_stays_on_its_chain")
class Wandering(FairSwaps):
    deadline = 1_800_000_000


@caught_by("test_a_bridge_says_until_when_and_to_whom_it_goes_back")
class Endless(FairBridge):
    deadline = None


@caught_by("test_a_deposit_is_read_from_its_receipt")
class Hopeful(FairBridge):
    def deposit(self, chain, receipt, chains):
        return super().deposit(chain, structs.replace(receipt, succeeded=True), chains)


@caught_by("test_a_fill_is_of_one_deposit")
class Blind(FairBridge):
    def fill(self, chain, deposit, origin, found):
        recipient = msgspec.json.decode(found.log.data, type=FillData).recipient
        return super().fill(chain, structs.replace(deposit, recipient=recipient), origin, found)


@caught_by("test_a_refund_is_what_goes_back_to_the_depositor")
class Generous(FairBridge):
    def refund(self, chain, deposit, receipt):
        somebody = structs.replace(deposit, refund_to=RECIPIENT)
        return super().refund(chain, deposit, receipt) or super().refund(chain, somebody, receipt)


@caught_by("test_what_the_service_says_of_a_deposit_is_pending_at_first")
class Optimistic(FairBridge):
    async def status(self, origin, deposit):
        status = await super().status(origin, deposit)
        return structs.replace(status, state="filled")


@caught_by("test_nobody_else_waits_while_it_is_asked")
class Sleepy(FairSwaps):
    async def quote(self, request):
        time.sleep(0.001)  # noqa: ASYNC251  what it is here for
        return await super().quote(request)
