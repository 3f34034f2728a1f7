"""Plans and writes sweeps (EIP-7702): tried whole on a node, as if every address had delegated already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cambist.plugin import Authorization, Intent, RateLimitedError, Sweep, SweepPlan, UnsignedTx
from cambist_chainkit.eip55 import keccak, spell
from cambist_chainkit.gathering import gather_all
from cambist_chainkit.pool import EndpointPool
from cambist_chainkit.remembered import Remembered

from . import authorization as eip7702
from .config import ChainSetup
from .endpoint import Calls, Endpoint
from .family import checked
from .fees import Market, fee_now
from .gas import LENT, Trial, trial_of
from .market import TX_BYTES_MAX
from .payload import TxFields, write_payload
from .planner import with_margin
from .quantities import quantity
from .sweeper import agent_of, collect_data, deployment

# EIP-7702's price of one authorization for an address that the chain has never seen; for others half of it comes back.
AUTHORIZATION_GAS: Final = 25_000
# EIP-7825: no transaction has more.
GAS_MAX: Final = 1 << 24
AUTHORIZATION_BYTES: Final = 110

_SPONSOR: Final = "0x" + keccak(b"SPONSOR()")[:4].hex()
_ADDRESS_CHARS: Final = 2 + 64


class Source:
    """What an endpoint knows of an address that is to be swept."""

    def __init__(self, sequence: str | None, code: str | None, agent: str) -> None:
        """Parse a nonce and a code as nodes answer them, in hex. Raises InconsistentChainError."""
        self.sequence = quantity(sequence or "")
        self.obeys = (code or "").lower() == eip7702.DESIGNATOR + agent[2:].lower()


class Sweeping:
    """Plans sweeps on one chain. Remembers whose sweeper it has seen there."""

    def __init__(self, setup: ChainSetup, market: Remembered[Market], pool: EndpointPool[Endpoint]) -> None:
        self._setup = setup
        self._market = market
        self._pool = pool
        self._seen: str | None = None

    async def plan(self, intents: Sequence[Intent], sponsor: str) -> SweepPlan:
        """Return what can be swept. Raises ChainError."""
        problem = await self._problem(sponsor)
        if problem is not None or not intents:
            return SweepPlan(sweep=None, refused=(problem,) * len(intents))

        async def ask(endpoint: Endpoint) -> tuple[list[str | None], Trial, Mapping[str, Source]]:
            sources = await self._sources(endpoint, intents)
            refused, whole = await self._try(endpoint, intents, sponsor)
            return refused, whole, sources

        market, (refused, whole, sources) = await gather_all(self._market.now(), self._pool.ask_any(ask))
        items = tuple(intent for intent, why in zip(intents, refused, strict=True) if why is None)
        if not items or whole.gas is None:
            return SweepPlan(sweep=None, refused=tuple(why or whole.refused for why in refused))
        needed = [(one, sources[one].sequence) for one in _sources_of(items) if not sources[one].obeys]
        gas = with_margin(whole.gas + AUTHORIZATION_GAS * len(needed))
        if gas > GAS_MAX:
            return SweepPlan(sweep=None, refused=tuple(why or "it takes more gas than a block has" for why in refused))
        fee = fee_now(market, self._setup.fees, self._setup.info.id, gas, parts=_parts(items, len(needed)))
        authorizations = tuple(
            Authorization(address=address, payload=self._authorization(sequence)) for address, sequence in needed
        )
        return SweepPlan(
            sweep=Sweep(sender=sponsor, items=items, authorizations=authorizations, fee=fee), refused=tuple(refused)
        )

    def write(self, sweep: Sweep, sequence: int | None, signatures: Sequence[bytes]) -> UnsignedTx:
        """Return a sweep as what its sender signs. Raises SignatureError where one of the others is none."""
        if sequence is None:
            raise ValueError("a transaction on an EVM chain needs a sequence")
        signed = []
        for one, signature in zip(sweep.authorizations, signatures, strict=True):
            r, s, parity = checked(one.payload, one.address, signature)
            agreed = eip7702.read_authorization(one.payload)
            signed.append(eip7702.SignedAuthorization(authorization=agreed, signature=(parity, r, s)))
        fields = TxFields(
            chain_id=self._setup.network.chain_id,
            sequence=sequence,
            gas=sweep.fee.limit,
            price=sweep.fee.price,
            tip=sweep.fee.tip,
            to=bytes.fromhex(self._sweeper[2:]),
            value=0,
            data=collect_data(sweep.items),
            authorizations=tuple(signed),
        )
        return UnsignedTx(sender=sweep.sender, sequence=sequence, payload=write_payload(fields), fee=sweep.fee)

    @property
    def _sweeper(self) -> str:
        if self._setup.info.sweeper is None:
            raise ValueError(f"{self._setup.info.id} has no sweeper")
        return self._setup.info.sweeper

    def _authorization(self, sequence: int) -> bytes:
        contract = bytes.fromhex(agent_of(self._sweeper)[2:])
        agreed = eip7702.Authorization(chain_id=self._setup.network.chain_id, contract=contract, sequence=sequence)
        return eip7702.write_authorization(agreed)

    async def _problem(self, sponsor: str) -> str | None:
        """Return why nothing can be swept: no sweeper, or not this sponsor's, or it is not deployed."""
        if self._setup.info.sweeper is None:
            return f"{self._setup.info.id} has no sweeper"
        if self._seen == sponsor:
            return None
        problem = await self._pool.ask_any(lambda endpoint: sweeper_problem(endpoint, self._setup, sponsor))
        self._seen = sponsor if problem is None else None
        return problem

    async def _sources(self, endpoint: Endpoint, intents: Sequence[Intent]) -> Mapping[str, Source]:
        addresses, agent = _sources_of(intents), agent_of(self._sweeper)
        methods = ("eth_getTransactionCount", "eth_getCode")
        answers = await endpoint.all([(method, (one, "latest")) for one in addresses for method in methods], str)
        return {address: Source(answers[2 * n], answers[2 * n + 1], agent) for n, address in enumerate(addresses)}

    async def _try(self, endpoint: Endpoint, intents: Sequence[Intent], sponsor: str) -> tuple[list[str | None], Trial]:
        """Try all at once; where that fails, each alone, and those together that did not fail."""
        (whole,) = await self._trials(endpoint, [intents], sponsor)
        if whole.gas is not None:
            return [None] * len(intents), whole
        alone = await self._trials(endpoint, [[one] for one in intents], sponsor)
        refused = [trial.refused for trial in alone]
        good = [intent for intent, why in zip(intents, refused, strict=True) if why is None]
        if good and len(good) < len(intents):
            (whole,) = await self._trials(endpoint, [good], sponsor)
        return refused, whole

    async def _trials(self, endpoint: Endpoint, wanted: Sequence[Sequence[Intent]], sponsor: str) -> list[Trial]:
        answers = await endpoint.each([self._call(intents, sponsor) for intents in wanted], str)
        return [_judged(endpoint, trial_of([answer])) for answer in answers]

    def _call(self, intents: Sequence[Intent], sponsor: str) -> tuple[str, Sequence[Any]]:
        tx = {"from": sponsor, "to": self._sweeper, "data": "0x" + collect_data(intents).hex(), "gas": hex(GAS_MAX)}
        code = {"code": eip7702.DESIGNATOR + agent_of(self._sweeper)[2:].lower()}
        overrides: dict[str, Any] = dict.fromkeys(_sources_of(intents), code)
        return "eth_estimateGas", (tx, "latest", overrides | {sponsor: {"balance": LENT}})


async def sweeper_problem(endpoint: Endpoint, setup: ChainSetup, sponsor: str | None = None) -> str | None:
    """Return what is wrong with the configured sweeper; without a sponsor, whether it is ours at all, whoever's."""
    sweeper, chain = setup.info.sweeper or "", setup.info.id
    calls: Calls = [
        ("eth_getCode", (sweeper, "latest")),
        ("eth_call", ({"to": sweeper, "data": _SPONSOR}, "latest")),
        ("eth_getCode", (agent_of(sweeper), "latest")),
    ]
    code, told, left = await endpoint.each(calls, str)
    if code in {"0x", "", None}:
        return f"{chain}: nothing is deployed at the sweeper's address {sweeper}"
    whose = spell(told[-40:].lower()) if isinstance(told, str) and len(told) == _ADDRESS_CHARS else None
    if whose is None or deployment(whose).address != sweeper:
        return f"{chain}: what is deployed at {sweeper} is not the sweeper"
    if sponsor is not None and whose != sponsor:
        return f"{chain}: the sweeper at {sweeper} obeys {whose}, and not {sponsor}"
    if left != "0x":
        # Addresses that delegate to code which stays would refuse plain transfers: better to sweep nothing.
        return f"{chain}: the sweeper's agent {agent_of(sweeper)} has stayed: this chain takes no contract away again"
    return None


def _judged(endpoint: Endpoint, trial: Trial) -> Trial:
    """Refuse what a node cannot try, as some cannot lend code: it is as good as any for everything else."""
    if trial.failure is None:
        return trial
    error = endpoint.rpc.error("eth_estimateGas", trial.failure)
    if isinstance(error, RateLimitedError):
        raise error
    return Trial(refused=f"it cannot be tried: {error}")


def _sources_of(intents: Sequence[Intent]) -> list[str]:
    return list(dict.fromkeys(one.source for one in intents))


def _parts(items: Sequence[Intent], authorizations: int) -> int:
    """Return for how many transfers a rollup charges for the data of this one transaction."""
    size = len(collect_data(items)) + AUTHORIZATION_BYTES * authorizations
    return 1 + size // TX_BYTES_MAX
