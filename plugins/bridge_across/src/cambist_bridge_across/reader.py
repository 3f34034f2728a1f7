"""Reads a deposit's call back, from its bytes alone: what it takes, what a fill has to give, to whom, until when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from cambist.plugin import Call, CallReader, ChainInfo, ExchangeEffects, Token, Units, UnreadablePayloadError

from .addresses import ZERO, same, spell
from .codec import DepositCall, UndecodableError, codec
from .config import AcrossConfig
from .deployments import Deployment, Deployments

QUOTE_AGE_S_MAX: Final = 3600
FILL_S_MAX: Final = 21_600
"""What the contract takes: quotes that are not older, and deadlines that are not farther from its own time."""

EXCLUSIVITY_OFFSET_MAX: Final = 31_536_000
"""Up to here the contract takes an exclusivity for a number of seconds after the deposit, beyond for a moment."""


class AcrossReader(CallReader):
    """Understands ``depositV3`` of the SpokePools, with no message, and nothing behind it but our integrator's id."""

    def __init__(self, config: AcrossConfig) -> None:
        """Take the operator's table, and import the codec: who reads has to."""
        self._deployments = Deployments(config)
        self._tail = config.tail
        self._codec = codec()

    def spenders(self, chain: ChainInfo) -> frozenset[str]:
        """Return the chain's SpokePool: it takes the token itself."""
        deployment = self._deployments.of(chain)
        return frozenset() if deployment is None else frozenset({deployment.spoke_pool})

    def read(
        self,
        chain: ChainInfo,
        sender: str,  # noqa: ARG002 - who calls pays, whoever it is
        call: Call,
        chains: Mapping[str, ChainInfo],
    ) -> ExchangeEffects | None:
        """Return what a deposit takes, and what it asks a fill to give."""
        origin = self._deployments.of(chain)
        if origin is None or not same(call.to_address, origin.spoke_pool):
            return None
        deposit = self._deposit(call.data)
        _check_times(deposit)
        sold = _sold(chain, origin, deposit, call.value)
        destination = destination_of(chain, deposit.destination_chain_id, chains)
        there = None if destination is None else self._deployments.of(destination)
        if destination is None or there is None:
            raise UnreadablePayloadError("the deposit is for a chain that Across is not known on")
        return ExchangeEffects(
            sold_contract=sold,
            sold=Units(deposit.input_amount),
            spender=None if sold is None else origin.spoke_pool,
            chain=destination.id,
            bought_contract=_bought(destination, there, deposit.output_token),
            bought_min=Units(deposit.output_amount),
            recipient=spell(deposit.recipient),
            refund_to=spell(deposit.depositor),
            valid_until=deposit.fill_deadline,
        )

    def _deposit(self, data: bytes) -> DepositCall:
        if self._tail:
            data = data.removesuffix(self._tail)
        try:
            deposit = self._codec.read_deposit_call(data)
        except UndecodableError as error:
            raise UnreadablePayloadError(f"the call of the SpokePool cannot be read: {error}") from error
        if deposit.message:
            raise UnreadablePayloadError("the deposit has a message, which would make the recipient do something")
        if ZERO in (deposit.depositor, deposit.recipient, deposit.output_token):
            raise UnreadablePayloadError("the deposit is of nobody, for nobody or for no token")
        if not (deposit.input_amount and deposit.output_amount):
            raise UnreadablePayloadError("the deposit takes or gives nothing")
        return deposit


def destination_of(origin: ChainInfo, number: int, chains: Mapping[str, ChainInfo]) -> ChainInfo | None:
    """Return the chain with this number; a live one, where one that is simulated has the same. None for no single one.

    The chain of the deposit is none: a bridge leads away.
    """
    if number == origin.chain_id_num:
        return None
    found = [chain for chain in chains.values() if chain.is_evm and chain.chain_id_num == number]
    if len(found) > 1:
        found = [chain for chain in found if chain.availability == "live"]
    return found[0] if len(found) == 1 else None


def _token(chain: ChainInfo, contract: str) -> Token | None:
    return next((token for token in chain.tokens if same(token.contract, contract)), None)


def _sold(chain: ChainInfo, origin: Deployment, deposit: DepositCall, value: int) -> str | None:
    """Return the token that is taken, or None for native coin, which the contract wraps."""
    if value:
        if not same(deposit.input_token, origin.wrapped_native) or value != deposit.input_amount:
            raise UnreadablePayloadError("the coin that goes along is not what the deposit is of")
        return None
    token = _token(chain, deposit.input_token)
    if token is None:
        raise UnreadablePayloadError("the deposit is of a token that is not registered")
    return token.contract


def _bought(chain: ChainInfo, there: Deployment, contract: str) -> str | None:
    """Return the token that a fill gives, or None for native coin.

    The contract unwraps whatever would be wrapped coin, unless the recipient's address has code of its own: with code
    of EIP-7702, an account's own address gets coin all the same.
    """
    if same(contract, there.wrapped_native):
        return None
    token = _token(chain, contract)
    if token is None:
        raise UnreadablePayloadError("the deposit is for a token that is not registered")
    return token.contract


def _check_times(deposit: DepositCall) -> None:
    """Refuse deadlines that the contract would refuse whenever it is called, and exclusivity beyond the deadline."""
    quoted, deadline = deposit.quote_timestamp, deposit.fill_deadline
    if not quoted < deadline <= quoted + QUOTE_AGE_S_MAX + FILL_S_MAX:
        raise UnreadablePayloadError("the deposit's deadline does not fit the time of its quote")
    if not deposit.exclusivity:
        if deposit.exclusive_relayer != ZERO:
            raise UnreadablePayloadError("the deposit names an exclusive relayer without a time for it")
        return
    if deposit.exclusive_relayer == ZERO:
        raise UnreadablePayloadError("the deposit has a time for an exclusive relayer and names none")
    if exclusive_until(deposit.exclusivity, quoted) > deadline:
        raise UnreadablePayloadError("the deposit leaves no time for anybody but an exclusive relayer")


def exclusive_until(exclusivity: int, at: int) -> int:
    """Return until when only the exclusive relayer can fill a deposit that is made at this moment; 0 for nobody."""
    return exclusivity + at if 0 < exclusivity <= EXCLUSIVITY_OFFSET_MAX else exclusivity
