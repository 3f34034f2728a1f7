"""Reads approvals and exchanges with the enabled providers' own readers, and finds out what leaves by them.

No price is believed but the operator's own: an exchange is an outflow of all that it takes, and of unknown price unless
it brings at least the floor rate for the pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import structlog

from cambist.plugin import (
    Allowance,
    Call,
    CallReader,
    ChainInfo,
    ExchangeEffects,
    Token,
    UnreadablePayloadError,
)

from .outflows import Outflow, Price, Refusal, in_words
from .rules import asset_name

ALLOWANCE_END = 2**255
"""From here on an allowance is meant to be without end; tokens treat the greatest ones so."""

log = structlog.get_logger(__name__)


class ExchangeReader:
    """Reads calls. ``floor_rates`` are by the assets that are sold and bought, in smallest units of both."""

    def __init__(
        self,
        readers: Sequence[CallReader],
        chains: Mapping[str, ChainInfo],
        floor_rates: Mapping[tuple[str, str], Fraction],
    ) -> None:
        self._readers = readers
        self._chains = chains
        self._floor_rates = floor_rates

    def allowance_refusal(self, chain: ChainInfo, allowance: Allowance) -> Refusal | None:
        """Return why nobody is allowed this, whatever the rules are. Nothing may be allowed to anybody.

        That takes back what somebody was allowed, and most of all whom nobody pins any more: perhaps that is why.
        """
        if _token(chain, allowance.contract) is None or allowance.amount < 0:
            return Refusal("UNKNOWN_TOKEN", f"{allowance.contract} is not among the tokens of {chain.id}.")
        if not allowance.amount:
            return None
        if allowance.spender not in self._spenders(chain):
            text = f"{allowance.spender} may take no tokens: no enabled provider exchanges through it on {chain.id}."
            return Refusal("SPENDER_NOT_ALLOWED", text)
        if allowance.amount >= ALLOWANCE_END:
            return Refusal("ALLOWANCE_WITHOUT_END", f"{allowance.spender} would be allowed to take everything.")
        return None

    def read(self, chain: ChainInfo, sender: str, call: Call) -> ExchangeEffects | Refusal:
        """Return what a call does, told by the one reader whose contract it calls.

        What fails on a call that is none of its own, or calls that unreadable in place of None, is passed over, so that
        just that is signed which would be without it. What fails on its own call leaves nobody who reads it.
        """
        failed: str | None = None
        for reader in self._readers:
            try:
                found = reader.read(chain, sender, call, self._chains)
            except Exception as error:  # whatever a plugin trips over, it has not read the call
                log.exception("call_not_read", chain=chain.id, reader=type(reader).__module__)
                failed = str(error) if isinstance(error, UnreadablePayloadError) else type(error).__name__
                if is_own_call(reader, chain, call):
                    break
                continue
            if found is not None:
                return self._refusal(chain, call, found) or found
        if failed is not None:
            return Refusal("UNREADABLE_PAYLOAD", f"The call of {call.to_address} cannot be read: {failed}.")
        return Refusal("UNREADABLE_PAYLOAD", f"It calls {call.to_address}, which no enabled provider reads.")

    def outflow(self, chain: ChainInfo, read: ExchangeEffects, *, into_own_wallet: bool) -> Outflow:
        """Return an exchange as an outflow of all that it takes, with what is known of its price."""
        there = self._chains[read.chain]
        sold, bought = asset_name(chain.id, read.sold_contract), asset_name(there.id, read.bought_contract)
        floor = self._floor_rates.get((sold, bought))
        price = Price.FLOOR if into_own_wallet else Price.NONE
        if floor is None or read.bought_min < read.sold * floor:
            price = Price.UNKNOWN
        text = (
            f"{in_words(chain, read.sold_contract, read.sold)} for at least"
            f" {in_words(there, read.bought_contract, read.bought_min)}"
        )
        away_until = None if there is chain else read.valid_until
        return Outflow(sold, there.id, read.recipient, read.sold, text, price, bought, read.bought_min, away_until)

    def _spenders(self, chain: ChainInfo) -> frozenset[str]:
        found: frozenset[str] = frozenset()
        for reader in self._readers:
            try:
                found |= reader.spenders(chain)
            except Exception:  # it names nobody, then
                log.exception("spenders_not_told", chain=chain.id)
        return found

    def _refusal(self, chain: ChainInfo, call: Call, read: ExchangeEffects) -> Refusal | None:
        """Return what is wrong with a reading that no reader should have made, or with the tokens that it names."""
        value = read.sold if read.sold_contract is None else 0
        if read.sold <= 0 or read.bought_min <= 0 or call.value != value:
            return Refusal("UNREADABLE_PAYLOAD", "The call was read as something that no exchange can be.")
        if _token(chain, read.sold_contract) is None:
            return Refusal("UNKNOWN_TOKEN", f"{read.sold_contract} is not among the tokens of {chain.id}.")
        there = self._chains.get(read.chain)
        if there is None or there.availability != chain.availability:
            return Refusal("UNKNOWN_CHAIN", f"The exchange pays out on {read.chain[:64]!r}, which is no chain here.")
        if _token(there, read.bought_contract) is None:
            return Refusal("UNKNOWN_TOKEN", f"{read.bought_contract} is not among the tokens of {there.id}.")
        if there is not chain and (read.refund_to is None or read.valid_until is None):
            return Refusal("UNREADABLE_PAYLOAD", "What another chain pays out must end, and then come back.")
        return None


def is_own_call(reader: CallReader, chain: ChainInfo, call: Call) -> bool:
    """Say whether a reader that failed names the contract that is called: what others say of it counts for nothing."""
    try:
        return call.to_address in reader.spenders(chain)
    except Exception:  # it names nobody, then
        log.exception("spenders_not_told", chain=chain.id)
        return False


def _token(chain: ChainInfo, contract: str | None) -> Token | None:
    return next((token for token in chain.tokens if token.contract == contract), None)
