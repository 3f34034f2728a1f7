"""Makes intents into steps: one transaction each, with the energy that a node found it to need and the present prices.

A step's unit of work is energy where a contract runs, and bandwidth everywhere else. ``covered`` is what the sender
has of it: energy is covered in part, the rest is burned; bandwidth wholly or not at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from typing import Final

from msgspec import Struct, structs

from cambist.plugin import Fee, FeeAboveCeilingError, Intent, Plan, PluginContext, Units
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.remembered import Remembered

from .addresses import ADDRESS_BYTES, ZERO_ADDRESS, spell
from .config import SUN_PER_TRX, ChainSetup
from .endpoint import Endpoint
from .energy import TRANSFER_BYTES, Lender, Need, cheapest
from .fees import PRICES_TTL_S, Prices, above_ceiling, dear_energy, read_prices
from .protobuf import NUMBER_MAX
from .replies import Account
from .resources import Spendable, lendable, read_account, read_resources, read_spendable
from .simulation import Trial, dearer, measure, measure_least
from .staking import Stakes
from .writing import bandwidth_for

AMOUNT_MAX: Final = 2**256 - 1

PAYS_FOR_BYTES_S: Final = 3600.0
"""How long nobody counts on the free bandwidth of a sender who was refused for want of it.

All accounts together have only so much of it, and no node tells how much is left of that. Longer than it takes until
what was refused is dead, and what is sent in its place has the coin to burn.
"""
REFUSED_KEPT: Final = 10_000

_SLACK: Final = 50  # what was measured counts as covered with a fiftieth more, also where the limit is above that


class Facts(Struct, kw_only=True):
    """What was learned of the chain for one call of ``plan``. Senders, lender and stakes have less after each plan.

    ``trials`` tell what a transfer takes as things are, ``dearest`` what it takes should its recipient be emptied
    first: where that need not be counted on, the same. ``lasts``: there is energy, own or lent, for the dearest of all.
    """

    prices: Prices
    senders: dict[str, Spendable]
    lender: Lender | None
    recipients: Mapping[str, Account]
    trials: Mapping[int, Trial]
    dearest: Mapping[int, Trial]
    stakes: Stakes
    lasts: bool = True


class Planner:
    """Plans on one chain. Remembers prices for some seconds, and who has to pay for bytes for a while."""

    def __init__(self, setup: ChainSetup, pool: EndpointPool[Endpoint], context: PluginContext) -> None:
        self._setup = setup
        self._pool = pool
        self._random = context.random
        self._now = context.monotonic
        self._pays_for_bytes: dict[str, float] = {}
        self._prices = Remembered(lambda: pool.ask_any(read_prices), context.monotonic, seconds=PRICES_TTL_S)

    def count_no_free_bandwidth(self, senders: Iterable[str]) -> None:
        """Have these senders pay for their bytes for a while: a node has found no bandwidth for them."""
        for sender in senders:
            self._pays_for_bytes.pop(sender, None)
            self._pays_for_bytes[sender] = self._now() + PAYS_FOR_BYTES_S
        while len(self._pays_for_bytes) > REFUSED_KEPT:
            del self._pays_for_bytes[next(iter(self._pays_for_bytes))]

    async def plan(self, intents: Sequence[Intent], sponsor: str | None, promised: Mapping[str, int]) -> list[Plan]:
        refusals = [self._refusal(intent) for intent in intents]
        able = {index: intent for index, intent in enumerate(intents) if refusals[index] is None}
        if not able:
            return [Plan(refused=refusal) for refusal in refusals]
        prices = await self._prices.now()
        dear = dear_energy(prices, self._setup)
        # Coin needs no energy, whatever that costs.
        tried = {index: intent for index, intent in able.items() if dear is None or intent.token.is_native}
        if dear is not None and not tried:
            raise FeeAboveCeilingError(dear)
        facts = await self._pool.ask_any(lambda endpoint: self._learn(endpoint, tried, sponsor, prices))
        for address, energy in promised.items():
            if address in facts.senders:
                facts.senders[address].set_aside(energy)
        facts.lasts = _lasts(tried, sponsor, facts)
        return [
            self._within_ceiling(index, intent, sponsor, facts)
            if index in tried
            else Plan(refused=refusals[index], above_ceiling=dear if index in able else None)
            for index, intent in enumerate(intents)
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
        # Of each source and token one tells it for all. The address is another one each time: were it known, somebody
        # would send it some.
        unused = spell(self._random.randbytes(ADDRESS_BYTES))
        emptied = {_of(one): one for one in tokens.values() if one.recipient_may_empty}
        to_unused = [structs.replace(one, to_address=unused) for one in emptied.values()]
        senders, lender, accounts, measured, least, stakes = await gather_all(
            read_spendable(endpoint, sources, prices.free_bandwidth),
            _lender(endpoint, sponsor if lends else None),
            endpoint.each(lambda address: read_account(endpoint, address), recipients),
            endpoint.each(lambda intent: measure(endpoint, intent, prices), tokens.values()),
            endpoint.each(lambda intent: measure_least(endpoint, intent, prices), to_unused),
            Stakes.read(endpoint, staking),
        )
        for address, sender in senders.items():
            if self._pays_for_bytes.get(address, 0.0) > self._now():
                sender.lose_free_bandwidth()
        trials, firsts = dict(zip(tokens, measured, strict=True)), dict(zip(emptied, least, strict=True))
        return Facts(
            prices=prices,
            senders=senders,
            lender=lender,
            recipients=dict(zip(recipients, accounts, strict=True)),
            trials=trials,
            dearest={
                index: dearer(trials[index], firsts[_of(one)]) if one.recipient_may_empty else trials[index]
                for index, one in tokens.items()
            },
            stakes=stakes,
        )

    def _within_ceiling(self, index: int, intent: Intent, sponsor: str | None, facts: Facts) -> Plan:
        """Plan what costs no more than the operator allows; what would cost more uses nothing that others could."""
        before = copy(facts.senders[intent.source])
        plan = self._planned(index, intent, sponsor, facts)
        told = None if plan.step is None else above_ceiling(plan.step.fee, self._setup)
        if told is None:
            return plan
        facts.senders[intent.source] = before
        if facts.lender is not None:
            facts.lender.left += plan.loan
        return Plan(above_ceiling=told)

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
            return Plan(refused=trial.refused)
        return self._token(intent, trial, facts.dearest[index], sponsor, facts)

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
        return _plan(intent, fee, _top_up(sender, fee, given, prices, own=intent.source == sponsor))

    def _token(self, intent: Intent, trial: Trial, dearest: Trial, sponsor: str | None, facts: Facts) -> Plan:
        """Plan the call of a token: energy of the sender's first, then the cheapest way to get the rest.

        Energy for what it takes should its recipient be emptied first is used where that leaves the others theirs, and
        what is burned is burned only if it comes to that: so much is allowed, up to the operator's ceiling. Where
        energy is used for less, the rest is said to be spare: it is burned for where the sender holds the coin anyway.
        """
        sender, prices, own = facts.senders[intent.source], facts.prices, intent.source == sponsor
        tried = dearest if facts.lasts else trial
        limit = tried.limit
        if tried.used + tried.used // _SLACK <= sender.energy < limit:
            # So near to enough, a limit of what is there keeps the transaction from burning anything.
            limit = sender.energy
        size = bandwidth_for(intent, _fee(sender, limit=max(limit, dearest.limit), price=prices.energy))
        covered = sender.take_energy(limit)
        extra = 0 if sender.take_bandwidth(size) else size * prices.bandwidth
        allowed = covered + max(self._setup.fee_ceiling - extra, 0) // prices.energy
        burnable = max(trial.limit, min(dearest.limit, allowed))
        spare = max(burnable - limit, 0)
        held = spare if intent.recipient_may_empty else 0
        if covered == limit:
            fee = _fee(sender, limit=limit, price=prices.energy, covered=covered, extra=extra)
            return _plan(intent, structs.replace(fee, spare=held), _top_up(sender, fee, 0, prices, own=own))
        burned = _fee(sender, limit=burnable, price=prices.energy, covered=covered, extra=extra)
        if own:
            return _plan(intent, burned, _top_up(sender, burned, 0, prices, own=own))
        need = Need(sender=sender, lacking=limit - covered, spare=spare, extra=extra, prices=prices)
        offer = cheapest(self._setup.config.energy, facts.lender, need)
        lent = _fee(sender, limit=limit, price=prices.energy, covered=limit, extra=extra)
        fee = structs.replace(lent, spare=held) if offer.loan else burned
        sender.pay(fee.cost_max)
        return _plan(intent, fee, offer.sponsoring, offer.loan)


def _plan(intent: Intent, fee: Fee, sponsoring: int, loan: int = 0) -> Plan:
    return Plan(step=intent.step(fee), loan=Units(loan), sponsoring=Units(sponsoring))


def _of(intent: Intent) -> tuple[str, str | None]:
    return intent.source, intent.token.contract


def _lasts(intents: Mapping[int, Intent], sponsor: str | None, facts: Facts) -> bool:
    """Return whether there is energy for all, own or lent, should all recipients be emptied.

    With less, what is set aside for one that may never need it would be missing to another, who would burn TRX.
    """
    needed = Counter[str]()
    for index, trial in facts.dearest.items():
        if intents[index].source != sponsor and facts.trials[index].refused is None:
            needed[intents[index].source] += trial.limit
    lacking = sum(max(limit - facts.senders[source].energy, 0) for source, limit in needed.items())
    if lacking == 0 or facts.lender is None:
        return lacking == 0
    stake = facts.lender.stake_for(lacking)
    # Each loan is in whole TRX.
    return stake is not None and stake + len(facts.dearest) * SUN_PER_TRX <= facts.lender.left


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
