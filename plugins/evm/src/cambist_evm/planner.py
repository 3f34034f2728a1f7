"""Makes intents into steps: one transaction each, with the gas that a node found it to need and the present fee."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from msgspec import structs

from cambist.plugin import Intent, Plan, Step, Units, UnsignedTx
from cambist_chainkit.eip55 import ADDRESS_BYTES, spell
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.remembered import Remembered

from .config import ChainSetup
from .endpoint import Endpoint
from .fees import Market, fee_now
from .gas import PLAIN_GAS, GasMax, Trial, measure, measure_emptied, missing_contracts
from .messages import message_of, parts_of
from .payload import TxFields, write_payload
from .refusals import refusal_of


class Planner:
    """Plans transactions on one chain. Remembers the fee market for a second, and which contracts have code."""

    def __init__(
        self, setup: ChainSetup, market: Remembered[Market], pool: EndpointPool[Endpoint], random: Random
    ) -> None:
        self.market = market
        self._setup = setup
        self._pool = pool
        self._random = random
        self._deployed: set[str] = set()
        network = setup.network
        self._gas_max = GasMax(
            token=network.transfer_gas_max,
            native=network.native_gas_max,
            call=network.call_gas_max,
            heeded=network.estimates_heed_gas,
        )

    async def plan(self, intents: Sequence[Intent]) -> list[Plan]:
        refusals = [refusal_of(self._setup.info, intent) for intent in intents]
        tried = [intent for intent, refusal in zip(intents, refusals, strict=True) if refusal is None]
        if not tried:
            return [Plan(refused=refusal) for refusal in refusals]
        market, trials = await gather_all(self.market.now(), self._measured(tried))
        found = iter(trials)
        return [
            Plan(refused=refusal) if refusal is not None else self._planned(intent, next(found), market)
            for intent, refusal in zip(intents, refusals, strict=True)
        ]

    async def _measured(self, intents: Sequence[Intent]) -> list[Trial]:
        # Another one each time: were it known, somebody would send it some.
        unused = spell(self._random.randbytes(ADDRESS_BYTES).hex())

        async def ask(endpoint: Endpoint) -> list[Trial]:
            contracts = {one for intent in intents for one in _contracts(intent)} - self._deployed
            trials, emptied, missing = await gather_all(
                measure(endpoint, intents, self._gas_max),
                measure_emptied(endpoint, intents, self._gas_max, unused),
                missing_contracts(endpoint, contracts),
            )
            self._deployed |= contracts - missing
            return [
                Trial(refused="there is no contract of it")
                if missing.intersection(_contracts(intent))
                else _at_least(trial, gas)
                for intent, trial, gas in zip(intents, trials, emptied, strict=True)
            ]

        return await self._pool.ask_any(ask)

    def _planned(self, intent: Intent, trial: Trial, market: Market) -> Plan:
        if trial.gas is None:
            return Plan(refused=f"{_refusing(intent)}: {trial.refused}")
        limit = self._limit(intent, trial.gas)
        fee = fee_now(market, self._setup.fees, self._setup.info.id, limit, parts=parts_of(intent))
        # The transfer that brings the fee there, which is never more than one part.
        top_up = Units(PLAIN_GAS * fee.price + market.data_fee)
        return Plan(step=intent.step(fee), sponsoring=top_up)

    def _limit(self, intent: Intent, gas: int) -> int:
        """Return a limit with a margin, within its bound where strangers decide what runs: they may burn all of it."""
        limit = with_margin(gas)
        bounded = intent.token.is_native or intent.action == "call"
        return min(limit, max(gas, self._gas_max.of(intent))) if bounded else limit


def _at_least(trial: Trial, gas: int) -> Trial:
    return trial if trial.gas is None else structs.replace(trial, gas=max(trial.gas, gas))


def _contracts(intent: Intent) -> set[str]:
    """Return the contracts without which an intent would do nothing."""
    called = None if intent.call is None else intent.call.to_address
    return {contract for contract in (intent.token.contract, called) if contract is not None}


def _refusing(intent: Intent) -> str:
    if intent.call is not None:
        return f"{intent.call.to_address} refuses the call"
    what = "the recipient refuses" if intent.token.is_native else f"the token {intent.token.symbol} refuses"
    return f"{what} the {'approval' if intent.action == 'approve' else 'transfer'} to {intent.to_address}"


def with_margin(gas: int) -> int:
    """Return a limit that holds while the chain's state moves on. A plain transfer costs the same for ever."""
    return gas if gas == PLAIN_GAS else gas + gas // 5


def unsigned(step: Step, sequence: int | None, chain_id: int) -> UnsignedTx:
    if sequence is None:
        raise ValueError("a transaction on an EVM chain needs a sequence")
    message = message_of(step)
    fields = TxFields(
        chain_id=chain_id,
        sequence=sequence,
        gas=step.fee.limit,
        price=step.fee.price,
        tip=step.fee.tip,
        to=bytes.fromhex(message.to[2:]),
        value=message.value,
        data=message.data,
    )
    return UnsignedTx(sender=step.sender, sequence=sequence, payload=write_payload(fields), fee=step.fee)
