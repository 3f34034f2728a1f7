# ruff: noqa: ARG002 - what is broken often ignores what it is asked
"""Chains in memory, each broken in one way: what the conformance kit must catch, by the test that catches it."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import asynccontextmanager

from msgspec.structs import replace

from cambist.plugin import (
    Block,
    EndpointHealth,
    Head,
    InvalidAddressError,
    ScanResult,
    Span,
    SpanTooWideError,
    StateUnavailableError,
    Token,
    Transfer,
    TxStatus,
    Units,
)
from cambist.testing.memory import (
    MEMORY_SAMPLES,
    MemoryChain,
    MemoryFamily,
    MemoryHarness,
    MemoryView,
    memory_chain_info,
)

INFO = memory_chain_info()
MEM, USDX, DAIX = INFO.tokens
BROKEN: dict[str, Callable[[], MemoryHarness]] = {}


def caught_by(*tests: str) -> Callable[[type], type]:
    """Register a broken view, chain or family under the tests that must catch it."""

    def register(broken: type) -> type:
        for test in tests:
            BROKEN[test] = lambda: harness_of(broken)
        return broken

    return register


def harness_of(broken: type) -> MemoryHarness:
    """Build a harness around the one broken part."""
    kind = type("BrokenChain", (MemoryChain,), {"view_type": broken}) if issubclass(broken, MemoryView) else broken
    if issubclass(kind, MemoryFamily):
        return MemoryHarness(MemoryChain(INFO, family=kind(), finality_lag_blocks=5))
    return MemoryHarness(kind(INFO, finality_lag_blocks=5))


def says(test: str, **changes: object) -> None:
    """Register a chain that says something senseless of itself."""
    info = replace(INFO, **changes)
    BROKEN[test] = lambda: MemoryHarness(MemoryChain(info))


says("test_the_chain_has_an_id_and_a_name", id="Memory Chain")
says("test_the_chain_belongs_to_its_family", family="other")
says("test_the_native_coin_comes_first_and_once", tokens=(USDX, MEM))
says("test_symbols_are_unique", tokens=(MEM, USDX, replace(DAIX, symbol="usdx")))
says("test_symbols_and_labels_can_be_shown", tokens=(MEM, replace(USDX, symbol="US D")))
says("test_contracts_are_unique_and_normalized", tokens=(MEM, replace(USDX, contract=USDX.contract.upper())))
says("test_decimals_are_in_range", tokens=(MEM, replace(USDX, decimals=37)))
says("test_limits_make_sense", confirmations=0)

BROKEN["test_samples_are_enough_to_tell"] = lambda: MemoryHarness(samples=replace(MEMORY_SAMPLES, refused=()))
BROKEN["test_known_answers_are_derived"] = lambda: MemoryHarness(
    samples=replace(MEMORY_SAMPLES, derived={(MEMORY_SAMPLES.account_xpubs[0], 1, 0): "mem1"})
)


@caught_by("test_endpoints_carry_no_credentials")
class LeakyChain(MemoryChain):
    def endpoints(self) -> Sequence[EndpointHealth]:
        return [replace(health, name="https://user:password@node") for health in super().endpoints()]


@caught_by("test_a_token_tells_what_it_is_registered_as")
class WrongDecimals(MemoryChain):
    async def token_at(self, contract: str) -> Token:
        return replace(await super().token_at(contract), decimals=18)


@caught_by("test_an_address_without_a_contract_is_no_token")
class TokensEverywhere(MemoryChain):
    async def token_at(self, contract: str) -> Token:
        return Token(symbol="USDX", contract=contract, decimals=6, label="Example dollar")


@caught_by("test_the_right_network_has_no_problems")
class ComplainingChain(MemoryChain):
    async def problems(self) -> Sequence[str]:
        return ["the moon is wrong"]


@caught_by("test_the_head_is_the_newest_block")
class LateHead(MemoryView):
    async def head(self) -> Head:
        head = await super().head()
        return replace(head, hash=(await self.block(max(0, head.height - 1))).hash)


@caught_by("test_what_is_mined_becomes_final")
class NeverFinal(MemoryView):
    async def head(self) -> Head:
        return replace(await super().head(), finalized_height=0)


@caught_by("test_a_reorg_leaves_what_is_final")
class TakesOneMore(MemoryChain):
    def reorg(self, depth, **kwargs) -> None:
        super().reorg(depth + 1, **kwargs)


@caught_by("test_a_past_balance_is_exact_or_refused")
class TellsNowForThen(MemoryChain):
    async def balances(self, wanted, at=None) -> Sequence[Units]:
        return await super().balances(wanted)


@caught_by("test_a_balance_at_the_finalized_height_is_told")
class KnowsOnlyNow(MemoryChain):
    async def balances(self, wanted, at=None) -> Sequence[Units]:
        if at not in (None, self.height):
            raise StateUnavailableError
        return await super().balances(wanted)


@caught_by("test_the_finalized_height_is_not_above_the_head")
class EagerFinality(MemoryView):
    async def head(self) -> Head:
        head = await super().head()
        return replace(head, finalized_height=head.height + 1)


@caught_by("test_a_block_knows_its_height_and_parent")
class Orphans(MemoryView):
    async def block(self, height: int) -> Block:
        return replace(await super().block(height), parent_hash="0" * 64)


@caught_by("test_time_does_not_run_backwards")
class Milliseconds(MemoryView):
    async def block(self, height: int) -> Block:
        block = await super().block(height)
        return replace(block, time=block.time * 1000)


@caught_by("test_a_block_above_the_head_is_an_error")
class Clamped(MemoryView):
    async def block(self, height: int) -> Block:
        return await super().block(min(height, self.chain.height))


@caught_by("test_a_scan_above_the_head_is_an_error", "test_a_scan_partly_above_the_head_is_an_error")
class Optimist(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        if span.first > self.chain.height:
            return ScanResult(blocks=[], transfers=[])
        return await super().scan(replace(span, last=min(span.last, self.chain.height)), watch)


@caught_by("test_a_scan_lists_every_block")
class NoEmptyBlocks(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        heights = {transfer.height for transfer in result.transfers}
        return replace(result, blocks=[block for block in result.blocks if block.height in heights])


@caught_by("test_a_scan_and_a_look_at_a_block_agree")
class OtherTimes(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        return replace(result, blocks=[replace(block, time=block.time + 1) for block in result.blocks])


@caught_by("test_a_span_of_one_block_holds_one")
class HalfOpen(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        return replace(result, blocks=result.blocks[:-1])


@caught_by("test_the_longest_span_is_answered")
class Boastful(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        if span.length > 10:
            raise SpanTooWideError(span.length)
        return await super().scan(span, watch)


@caught_by("test_several_views_at_once_do_not_disturb_each_other")
class Muddled(MemoryView):
    async def block(self, height: int) -> Block:
        self.chain.asked = height
        await asyncio.sleep(0)
        return await super().block(self.chain.asked)


@caught_by("test_an_outage_says_so_and_passes")
class Silent(MemoryChain):
    @asynccontextmanager
    async def view(self):
        yield self.view_type(self)

    async def met(self, call, *, span_length=0) -> None:
        """Notice no fault at all."""


class ChangedTransfers(MemoryView):
    """Whose scans tell transfers differently."""

    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        return replace(result, transfers=list(self.change(result.transfers)))

    def change(self, transfers: Sequence[Transfer]) -> Iterator[Transfer]:
        raise NotImplementedError


@caught_by("test_a_native_transfer_is_found")
class TokensOnly(ChangedTransfers):
    def change(self, transfers):
        return (transfer for transfer in transfers if transfer.contract)


@caught_by("test_a_token_transfer_is_found")
class FirstTokenOnly(ChangedTransfers):
    def change(self, transfers):
        return (transfer for transfer in transfers if transfer.contract != DAIX.contract)


@caught_by("test_the_smallest_amount_is_exact")
class Floats(ChangedTransfers):
    def change(self, transfers):
        return (replace(transfer, amount=Units(int(float(transfer.amount)))) for transfer in transfers)


@caught_by("test_two_transfers_to_one_recipient_in_one_transaction_are_both_found")
class OnePerRecipient(ChangedTransfers):
    def change(self, transfers):
        return {(transfer.tx_id, transfer.recipient): transfer for transfer in transfers}.values()


@caught_by("test_transfers_to_two_recipients_in_one_transaction_are_both_found")
class OnePerTransaction(ChangedTransfers):
    def change(self, transfers):
        return {transfer.tx_id: transfer for transfer in transfers}.values()


@caught_by("test_several_native_transfers_in_one_transaction_are_all_found")
class NoTraces(ChangedTransfers):
    def change(self, transfers):
        return (transfer for transfer in transfers if not transfer.position.startswith("trace"))


@caught_by(
    "test_a_position_does_not_depend_on_the_neighbours",
    "test_a_token_transfer_that_is_mined_again_keeps_its_identity",
    "test_several_transfers_that_are_mined_again_keep_their_identities",
)
class BlockWideIndexes(MemoryView):
    def _transfers(self, block, watch):
        everyone = type("Everyone", (), {"__contains__": lambda *_: True})()
        for index, transfer in enumerate(super()._transfers(block, everyone)):
            if self.chain.family.address_key(transfer.recipient) in watch:
                yield replace(transfer, position=f"log:{index}")


@caught_by("test_scanning_again_gives_the_same_transfers")
class CountedPositions(ChangedTransfers):
    numbers = itertools.count()

    def change(self, transfers):
        return (replace(transfer, position=f"log:{next(self.numbers)}") for transfer in transfers)


@caught_by("test_a_span_in_parts_gives_the_same_as_the_whole")
class LastBlockLost(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        if span.length == 1:
            return result
        return replace(result, transfers=[found for found in result.transfers if found.height != span.last])


@caught_by("test_nobody_watched_gives_nothing", "test_what_nobody_watches_is_left_out")
class Unfiltered(MemoryView):
    def _transfers(self, block, watch):
        return super()._transfers(block, type("Everyone", (), {"__contains__": lambda *_: True})())


@caught_by("test_what_a_watched_address_sends_is_told")
class IncomingOnly(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        key_of = self.chain.family.address_key
        return replace(result, transfers=[found for found in result.transfers if key_of(found.recipient) in watch])


@caught_by("test_a_failed_transfer_is_not_taken")
class FailuresTaken(MemoryView):
    def _transfers(self, block, watch):
        return super()._transfers(replace(block, reverted=frozenset()), watch)


@caught_by("test_an_impostor_is_not_taken")
class Gullible(MemoryChain):
    def is_registered(self, contract: str | None) -> bool:
        return True


@caught_by("test_a_transfer_of_zero_is_not_taken")
class ZeroTaken(MemoryView):
    def _transfers(self, block, watch):
        one_each = [
            replace(tx, outputs=tuple(replace(output, amount=output.amount or 1) for output in tx.outputs))
            for tx in block.transactions
        ]
        return super()._transfers(replace(block, transactions=tuple(one_each)), watch)


@caught_by("test_a_balance_is_what_came_in")
class NativeBalanceOnly(MemoryChain):
    async def balance(self, address, token, at=None):
        return await super().balance(address, self.info.native, at)


@caught_by("test_a_past_balance_is_what_it_was")
class PresentOnly(MemoryChain):
    async def balance(self, address, token, at=None):
        return await super().balance(address, token)


@caught_by("test_an_unheard_of_transaction_is_unknown", "test_a_waiting_transaction_is_pending")
class Hasty(MemoryChain):
    async def transaction(self, tx_id: str) -> TxStatus:
        status = await super().transaction(tx_id)
        swapped = {"unknown": "pending", "pending": "unknown"}
        return replace(status, state=swapped.get(status.state, status.state))


@caught_by("test_a_mined_transaction_names_its_block")
class Blockless(MemoryChain):
    async def transaction(self, tx_id: str) -> TxStatus:
        return replace(await super().transaction(tx_id), block=None)


@caught_by("test_a_reorg_is_seen_in_the_hashes")
class Remembering(MemoryView):
    async def block(self, height: int) -> Block:
        memory = self.chain.__dict__.setdefault("memory", {})
        return memory.setdefault(height, await super().block(height))


@caught_by("test_a_reorg_takes_transfers_away")
class Nostalgic(MemoryView):
    async def scan(self, span: Span, watch: object) -> ScanResult:
        result = await super().scan(span, watch)
        memory = self.chain.__dict__.setdefault("memory", {})
        memory |= {(found.tx_id, found.position): found for found in result.transfers}
        return replace(
            result, transfers=[found for found in memory.values() if span.first <= found.height <= span.last]
        )


@caught_by("test_a_transfer_that_is_mined_again_keeps_its_identity")
class PositionsByHeight(ChangedTransfers):
    def change(self, transfers):
        return (replace(transfer, position=f"{transfer.position}@{transfer.height}") for transfer in transfers)


@caught_by("test_a_family_has_a_name_and_a_coin_type")
class Nameless(MemoryFamily):
    name = "Memory Family"


@caught_by("test_the_same_path_always_gives_the_same_address")
class Forgetful(MemoryFamily):
    numbers = itertools.count()

    def derive_address(self, account_xpub, change, index):
        return super().derive_address(account_xpub + str(next(self.numbers)), change, index)


@caught_by("test_other_paths_give_other_addresses")
class NoChange(MemoryFamily):
    def derive_address(self, account_xpub, change, index):
        return super().derive_address(account_xpub, 0, index)


@caught_by("test_a_derived_address_is_normalized")
class Shouting(MemoryFamily):
    def derive_address(self, account_xpub, change, index):
        return super().derive_address(account_xpub, change, index).upper()


@caught_by("test_every_spelling_has_one_normal_form")
class AsWritten(MemoryFamily):
    def normalize_address(self, text):
        super().normalize_address(text)
        return text


@caught_by("test_what_is_no_address_is_refused")
class CaseBlind(MemoryFamily):
    def normalize_address(self, text):
        return super().normalize_address(text.lower())


@caught_by("test_what_others_call_an_address_is_refused_or_normalized")
class Named(MemoryFamily):
    def normalize_address(self, text):
        if "@" in text:
            raise LookupError(text)
        return super().normalize_address(text)


@caught_by("test_an_address_with_something_around_it_is_refused")
class Stripping(MemoryFamily):
    def normalize_address(self, text):
        return super().normalize_address(text.strip())


@caught_by("test_a_mistyped_address_is_never_the_same_address")
class Guessing(MemoryFamily):
    def normalize_address(self, text):
        try:
            return super().normalize_address(text)
        except InvalidAddressError:
            known = next(iter(MEMORY_SAMPLES.spellings))
            if sum(one != other for one, other in zip(text, known, strict=False)) == 1 and len(text) == len(known):
                return known
            raise


@caught_by("test_keys_tell_addresses_apart")
class ShortKeys(MemoryFamily):
    def address_key(self, address):
        return super().address_key(address)[:1]


@caught_by("test_payment_uris_say_who_is_paid")
class NamelessAddress(MemoryFamily):
    def address_uri(self, chain, address):
        return f"memory:?chain={chain.id}"


@caught_by("test_payment_uris_say_who_is_paid")
class Anonymous(MemoryFamily):
    def payment_uri(self, chain, address, token, amount):
        return f"memory:{chain.id}"


@caught_by("test_nobody_else_waits_while_it_is_asked")
class Sleepy(MemoryView):
    async def scan(self, span, watch):
        time.sleep(0.001)  # noqa: ASYNC251  what it is here for
        return await super().scan(span, watch)
