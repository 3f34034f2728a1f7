"""Makes intents into steps: one transaction each, with the energy that a node found it to need and the present prices.

A step's unit of work is energy where a contract runs, and bandwidth everywhere else. ``covered`` is what the sender
has of it: energy is covered in part, the rest is burned; bandwidth wholly or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from msgspec import Struct

from cambist.plugin import Fee, Intent, Plan, Units
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.remembered import Remembered

from .addresses import ZERO_ADDRESS
from .config import ChainSetup
from .endpoint import Endpoint
from .energy import TRANSFER_BYTES, Lender, Need, cheapest
from .fees import PRICES_TTL_S, Prices, check_fee, check_price, read_prices
from .protobuf import NUMBER_MAX
from .replies import Account
from .resources import Spendable, lendable, read_account, read_resources, read_spendable
from .simulation import Trial, measure
from .staking import Stakes
from .writing import bandwidth_for

AMOUNT_MAX: Final = 2**256 - 1

_SLACK: Final = 50  # what was measured counts as covered with a fiftieth more, also where the limit is above that


class Facts(Struct, kw_only=True):
    """What was learned of the chain for one call of ``plan``. Senders, lender and stakes have less after each plan."""

    prices: Prices
    senders: Mapping[str, Spendable]
    lender: Lender | None
    recipients: Mapping[str, Account]
    trials: Mapping[int, Trial]
    stakes: Stakes


class Planner:
    """Plans on one chain. Remembers prices for some seconds, and nothing else."""

    def __init__(self, setup: ChainSetup, pool: EndpointPool[Endpoint], monotonic: Callable[[], float]) -> None:
        self._setup = setup
        self._pool = pool
        self._prices = Remembered(lambda: pool.ask_any(read_prices), monotonic, seconds=PRICES_TTL_S)

    async def plan(self, intents: Sequence[Intent], sponsor: str | None, promised: Mapping[str, int]) -> list[Plan]:
        refusals = [self._refusal(intent) for intent in intents]
        tried = {index: intent for index, intent in enumerate(intents) if refusals[index] is None}
        if not tried:
            return [Plan(refused=refusal) for refusal in refusals]
        prices = await self._prices.now()
        if any(not intent.token.is_native for intent in tried.values()):
            check_price(prices, self._setup)
        facts = await self._pool.ask_any(lambda endpoint: self._learn(endpoint, tried, sponsor, prices))
        for address, energy in promised.items():
            if address in facts.senders:
                facts.senders[address].set_aside(energy)
        return [
            Plan(refused=refusal) if refusal is not None else self._planned(index, intent, sponsor, facts)
            for index, (intent, refusal) in enumerate(zip(intents, refusals, strict=True))
        ]

    def _refusal(self, intent: Intent) -> str | None:
        """Return why a transfer must not be: what it would send to such an address is lost, or stays where it is."""
        if intent.action in {"approve", "call"}:
            return f"no contracts are called on {self._setup.info.id}, but for transfers of tokens"
        if intent.action != "transfer":
            return None
        if intent.to_address == intent.source:
            return "it would send to itself"
        if intent.to_address == ZERO_ADDRESS:
            return "nobody owns the zero address"
        if intent.amount > (NUMBER_MAX if intent.token.is_native else AMOUNT_MAX):
            return "there is not so much of it"
        for token in self._setup.info.tokens:
            if token.contract == intent.to_address:
                return f"{intent.to_address} is the contract of {token.symbol}: what is sent there is lost"
        return None

    async def _learn(
        self, endpoint: Endpoint, intents: dict[int, Intent], sponsor: str | None, prices: Prices
    ) -> Facts:
        """Ask one endpoint for all that the plans depend on."""
        tokens = {index: one for index, one in intents.items() if not one.token.is_native}
        natives = [one.to_address for one in intents.values() if one.token.is_native and one.action == "transfer"]
        recipients = list(dict.fromkeys(natives))
        staking = [one for one in intents.values() if one.action != "transfer"]
        sources = [one.source for one in intents.values()]
        lends = (
            sponsor is not None
            and self._setup.config.energy != "burn"
            and any(one.source != sponsor for one in tokens.values())
        )
        senders, lender, accounts, trials, stakes = await gather_all(
            read_spendable(endpoint, sources, prices.free_bandwidth),
            _lender(endpoint, sponsor if lends else None),
            endpoint.each(lambda address: read_account(endpoint, address), recipients),
            endpoint.each(lambda intent: measure(endpoint, intent, prices), tokens.values()),
            Stakes.read(endpoint, staking),
        )
        return Facts(
            prices=prices,
            senders=senders,
            lender=lender,
            recipients=dict(zip(recipients, accounts, strict=True)),
            trials=dict(zip(tokens, trials, strict=True)),
            stakes=stakes,
        )

    def _planned(self, index: int, intent: Intent, sponsor: str | None, facts: Facts) -> Plan:
        if intent.action != "transfer":
            refusal = facts.stakes.take(intent)
            return Plan(refused=refusal) if refusal is not None else self._native(intent, sponsor, facts)
        if intent.token.is_native:
            if facts.recipients[intent.to_address].is_contract:
                return Plan(refused=f"{intent.to_address} is a contract, and contracts take no plain transfer of TRX")
            return self._native(intent, sponsor, facts)
        trial = facts.trials[index]
        if trial.refused is not None:
            refusal = f"the token {intent.token.symbol} refuses the transfer to {intent.to_address}: {trial.refused}"
            return Plan(refused=refusal)
        return self._token(intent, trial, sponsor, facts)

    def _native(self, intent: Intent, sponsor: str | None, facts: Facts) -> Plan:
        """Plan what runs no contract: it is paid in bandwidth, or with the price of a new account."""
        sender, prices = facts.senders[intent.source], facts.prices
        size = bandwidth_for(intent, _fee(sender, limit=0, price=0))
        extra = 0
        recipient = facts.recipients.get(intent.to_address)
        if intent.action == "transfer" and recipient is not None and not recipient.exists:
            staked = sender.take_staked_bandwidth(size * prices.activation_rate)
            covered = size
            extra = prices.activation - (prices.activation_bandwidth if staked else 0)
        else:
            covered = size if sender.take_bandwidth(size) else 0
        fee = _fee(sender, limit=size, price=prices.bandwidth, covered=covered, extra=extra)
        given = intent.amount if intent.action in {"transfer", "stake"} else 0
        return self._plan(intent, fee, _top_up(sender, fee, given, prices, own=intent.source == sponsor))

    def _token(self, intent: Intent, trial: Trial, sponsor: str | None, facts: Facts) -> Plan:
        """Plan the call of a token: energy of the sender's first, then the cheapest way to get the rest."""
        sender, prices = facts.senders[intent.source], facts.prices
        limit = trial.limit
        if trial.used + trial.used // _SLACK <= sender.energy < limit:
            # So near to enough, a limit of what is there keeps the transaction from burning anything.
            limit = sender.energy
        size = bandwidth_for(intent, _fee(sender, limit=limit, price=prices.energy))
        covered = sender.take_energy(limit)
        extra = 0 if sender.take_bandwidth(size) else size * prices.bandwidth
        if covered == limit or intent.source == sponsor:
            fee = _fee(sender, limit=limit, price=prices.energy, covered=covered, extra=extra)
            return self._plan(intent, fee, _top_up(sender, fee, 0, prices, own=intent.source == sponsor))
        need = Need(sender=sender, lacking=limit - covered, extra=extra, prices=prices)
        offer = cheapest(self._setup.config.energy, facts.lender, need)
        fee = _fee(sender, limit=limit, price=prices.energy, covered=limit if offer.loan else covered, extra=extra)
        sender.pay(fee.cost_max)
        return self._plan(intent, fee, offer.sponsoring, offer.loan)

    def _plan(self, intent: Intent, fee: Fee, sponsoring: int, loan: int = 0) -> Plan:
        check_fee(fee, self._setup)
        return Plan(step=intent.step(fee), loan=Units(loan), sponsoring=Units(sponsoring))


async def _lender(endpoint: Endpoint, sponsor: str | None) -> Lender | None:
    if sponsor is None:
        return None
    left, resources = await gather_all(lendable(endpoint, sponsor), read_resources(endpoint, sponsor))
    return Lender(left, resources.total_energy_limit, resources.total_energy_weight)


def _fee(sender: Spendable, *, limit: int, price: int, covered: int = 0, extra: int = 0) -> Fee:
    reserve = Units(0 if sender.active else 1)
    return Fee(limit=limit, price=price, covered=covered, extra=Units(extra), reserve=reserve)


def _top_up(sender: Spendable, fee: Fee, given: int, prices: Prices, *, own: bool) -> int:
    """Return what it costs the sponsor to bring the sender the fee, where it has not that much beside what it gives."""
    enough = sender.active and sender.balance >= fee.cost_max + given
    sender.pay(fee.cost_max + given)
    if enough or own:
        return 0
    return TRANSFER_BYTES * prices.bandwidth if sender.active else prices.activation
