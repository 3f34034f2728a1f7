"""Makes intents into steps: one transaction each, with the gas that a node found it to need and the present fee."""

from __future__ import annotations

from collections.abc import Sequence

from cambist.plugin import Intent, Plan, Step, Units, UnsignedTx
from cambist_chainkit.contracts import transfer_data
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.remembered import Remembered

from .config import ChainSetup
from .decode import ZERO_ADDRESS
from .endpoint import Endpoint
from .fees import Market, fee_now
from .gas import PLAIN_GAS, GasMax, Trial, measure, missing_contracts
from .payload import TxFields, write_payload


class Planner:
    """Plans transfers on one chain. Remembers the fee market for a second, and which tokens have code."""

    def __init__(self, setup: ChainSetup, market: Remembered[Market], pool: EndpointPool[Endpoint]) -> None:
        self.market = market
        self._setup = setup
        self._pool = pool
        self._deployed: set[str] = set()
        self._gas_max = GasMax(token=setup.network.transfer_gas_max, native=setup.network.native_gas_max)

    async def plan(self, intents: Sequence[Intent]) -> list[Plan]:
        refusals = [self._refusal(intent) for intent in intents]
        tried = [intent for intent, refusal in zip(intents, refusals, strict=True) if refusal is None]
        if not tried:
            return [Plan(refused=refusal) for refusal in refusals]
        market, trials = await gather_all(self.market.now(), self._measured(tried))
        found = iter(trials)
        return [
            Plan(refused=refusal) if refusal is not None else self._planned(intent, next(found), market)
            for intent, refusal in zip(intents, refusals, strict=True)
        ]

    def _refusal(self, intent: Intent) -> str | None:
        """Return why an intent must not be: what it would send to such an address is lost."""
        if intent.to_address == ZERO_ADDRESS:
            return "nobody owns the zero address"
        for token in self._setup.info.tokens:
            if token.contract == intent.to_address:
                return f"{intent.to_address} is the contract of {token.symbol}: what is sent there is lost"
        return None

    async def _measured(self, intents: Sequence[Intent]) -> list[Trial]:
        async def ask(endpoint: Endpoint) -> list[Trial]:
            tokens = [one.token for one in intents if one.token.contract not in self._deployed]
            trials, missing = await gather_all(
                measure(endpoint, intents, self._gas_max), missing_contracts(endpoint, tokens)
            )
            self._deployed |= {token.contract for token in tokens if token.contract is not None} - missing
            return [
                Trial(refused="there is no contract of it") if intent.token.contract in missing else trial
                for intent, trial in zip(intents, trials, strict=True)
            ]

        return await self._pool.ask_any(ask)

    def _planned(self, intent: Intent, trial: Trial, market: Market) -> Plan:
        if trial.gas is None:
            what = "the recipient refuses" if intent.token.is_native else f"the token {intent.token.symbol} refuses"
            return Plan(refused=f"{what} the transfer to {intent.to_address}: {trial.refused}")
        fee = fee_now(market, self._setup.fees, self._setup.info.id, self._limit(intent, trial.gas))
        top_up = Units(PLAIN_GAS * fee.price + fee.extra)  # the transfer that brings the fee there
        return Plan(step=intent.step(fee), sponsoring=top_up)

    def _limit(self, intent: Intent, gas: int) -> int:
        """Return a limit with a margin, for native coin within its bound: what runs there may burn all of it."""
        limit = with_margin(gas)
        return min(limit, max(gas, self._gas_max.of(intent))) if intent.token.is_native else limit


def with_margin(gas: int) -> int:
    """Return a limit that holds while the chain's state moves on. A plain transfer costs the same for ever."""
    return gas if gas == PLAIN_GAS else gas + gas // 5


def unsigned(step: Step, sequence: int | None, chain_id: int) -> UnsignedTx:
    if sequence is None:
        raise ValueError("a transaction on an EVM chain needs a sequence")
    to_address = bytes.fromhex(step.to_address[2:])
    contract = step.token.contract
    fields = TxFields(
        chain_id=chain_id,
        sequence=sequence,
        gas=step.fee.limit,
        price=step.fee.price,
        tip=step.fee.tip,
        to=to_address if contract is None else bytes.fromhex(contract[2:]),
        value=step.amount if contract is None else 0,
        data=b"" if contract is None else transfer_data(to_address, step.amount),
    )
    return UnsignedTx(sender=step.sender, sequence=sequence, payload=write_payload(fields), fee=step.fee)
