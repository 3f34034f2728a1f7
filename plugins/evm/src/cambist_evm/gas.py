"""How much gas a transaction needs, and whether the chain takes it at all: tried on a node, without sending anything.

What a source does not hold yet is no obstacle: native coin is lent for the trial, and of a token so much is tried as
is there. Where a recipient may have been emptied by then, a transfer to an address that holds none is tried beside it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct, structs

from cambist.plugin import ChainError, InconsistentChainError, Intent
from cambist_chainkit.reverts import one_line, refusal_in

from .endpoint import Calls, Endpoint
from .lookups import balance_call, read_balance
from .messages import message_of
from .quantities import quantity
from .wire import RpcFailure

PLAIN_GAS: Final = 21_000
TOKEN_GAS_UNKNOWN: Final = 150_000
NATIVE_GAS_UNKNOWN: Final = 100_000
# Where less was tried than will be sent, or nothing: slots that go from nothing to something cost 22 100 each.
UNTRIED_GAS: Final = 50_000
TRIES: Final = 3
"""So often a refused transfer of a token is tried again, until a node has what another told that its source holds."""

LENT: Final = hex(1 << 120)
_WORD_CHARS: Final = 2 + 64
_REVERTED_CODE: Final = 3
_REVERTED: Final = re.compile(
    r"revert|invalid opcode|bad instruction|invalid ?jump|stack (?:under|over)flow|vm execution error|out of ?gas|"
    r"gas required exceeds|cannot estimate gas|always failing transaction|opcode not found|invalidfeopcode",
    re.IGNORECASE,
)
_NOT_EXECUTED: Final = re.compile(r"insufficient (?:funds|balance)|upfront cost|not enough funds", re.IGNORECASE)
_SAID: Final = re.compile(r"revert(?:ed)?(?: with reason)?[:\s]+(?P<reason>.+)", re.IGNORECASE | re.DOTALL)
_HEX: Final = re.compile(r"0x([0-9a-fA-F]*)")


class Trial(Struct, frozen=True, kw_only=True):
    """What came of trying: the gas; or why the chain refuses; or the node's failure, from which nothing is learned."""

    gas: int | None = None
    refused: str | None = None
    failure: RpcFailure | None = None


class GasMax(Struct, frozen=True, kw_only=True):
    """Bounds what a hostile recipient can make the node do, and the gas station pay for.

    ``heeded`` says that the network's nodes are known to try with no more than they are given.
    """

    token: int
    native: int
    call: int
    heeded: bool

    def of(self, intent: Intent) -> int:
        if intent.action == "call":
            return self.call
        if not intent.token.is_native:
            return self.token
        return min(self.token, self.native if intent.work_max is None else intent.work_max)

    def believed(self, given: int) -> int:
        """Return the most that a node is believed to have needed. Some add a little to what they found."""
        return 2 * (given if self.heeded else max(given, self.token))


Kind: TypeAlias = Literal["token", "native", "approve", "call"]


async def measure(endpoint: Endpoint, intents: Sequence[Intent], gas_max: GasMax) -> list[Trial]:
    """Return for each intent its gas, without a margin, or why it is refused. Raises ChainError."""
    trials = await _try(endpoint, [_calls(intent, intent.amount, gas_max) for intent in intents], gas_max)
    for kind, retry in _RETRIES.items():
        failed = [index for index, trial in enumerate(trials) if trial.gas is None and _kind(intents[index]) == kind]
        if failed:
            tried = [trials[index] for index in failed]
            retried = await retry(endpoint, [intents[index] for index in failed], tried, gas_max)
            for index, trial in zip(failed, retried, strict=True):
                trials[index] = trial
    return trials


async def measure_emptied(endpoint: Endpoint, intents: Sequence[Intent], gas_max: GasMax, unused: str) -> list[int]:
    """Return for each intent the gas that it needs once its recipient was emptied; 0 where that need not be counted on.

    Where it cannot be tried, as the source holds too little yet, it is 0 as well. ``unused`` is an address that holds
    nothing. One transfer of each source and token tells it for all of them, the least. Raises ChainError.
    """
    able = [one.recipient_may_empty and _kind(one) == "token" for one in intents]
    least: dict[tuple[str, str | None], Intent] = {}
    for intent, is_able in zip(intents, able, strict=True):
        known = least.get(_of(intent))
        if is_able and (known is None or intent.amount < known.amount):
            least[_of(intent)] = structs.replace(intent, to_address=unused)
    if not least:
        return [0] * len(intents)
    tried = await _try(endpoint, [_calls(intent, intent.amount, gas_max) for intent in least.values()], gas_max)
    gas = {key: _learned(endpoint, trial).gas or 0 for key, trial in zip(least, tried, strict=True)}
    return [gas[_of(intent)] if is_able else 0 for intent, is_able in zip(intents, able, strict=True)]


def _of(intent: Intent) -> tuple[str, str | None]:
    return intent.source, intent.token.contract


def _kind(intent: Intent) -> Kind:
    if intent.action == "call":
        return "call"
    if intent.action == "approve":
        return "approve"
    return "native" if intent.token.is_native else "token"


async def _retry_tokens(
    endpoint: Endpoint, intents: Sequence[Intent], failed: Sequence[Trial], gas_max: GasMax
) -> list[Trial]:
    """Try as much of each token as its source holds, so that only what the token refuses counts as refused."""
    del failed
    held = await endpoint.each([balance_call(one.source, one.token, "latest") for one in intents], str)
    amounts = [_at_most(endpoint, one, answer) for one, answer in zip(intents, held, strict=True)]
    tried = await _try(
        endpoint, [_calls(one, amount, gas_max) for one, amount in zip(intents, amounts, strict=True)], gas_max
    )
    doubted = [index for index, trial in enumerate(tried) if trial.refused is not None and amounts[index]]
    if doubted:
        again = await _try_where_held(endpoint, [(intents[index], amounts[index]) for index in doubted], gas_max)
        for index, trial in zip(doubted, again, strict=True):
            tried[index] = trial
    trials = []
    for intent, amount, trial in zip(intents, amounts, tried, strict=True):
        if trial.gas is not None and amount < intent.amount:
            trials.append(Trial(gas=trial.gas + UNTRIED_GAS))
        elif trial.refused is not None and amount == 0 < intent.amount:
            trials.append(Trial(gas=TOKEN_GAS_UNKNOWN))
        else:
            trials.append(_learned(endpoint, trial))
    return trials


async def _try_where_held(endpoint: Endpoint, wanted: Sequence[tuple[Intent, int]], gas_max: GasMax) -> list[Trial]:
    """Try refused transfers again, each with what a node tells in the same request that the source holds there.

    Behind one address may be nodes that are some blocks apart: one that refuses may not have yet what another tells of.
    """
    asked = []
    for intent, amount in wanted:
        asked.append([balance_call(intent.source, intent.token, "latest"), *_calls(intent, amount, gas_max)])
    found: dict[int, Trial] = {}
    for _ in range(TRIES):
        left = [index for index in range(len(wanted)) if index not in found]
        some = max(endpoint.short_calls_max // len(asked[0]), 1)
        for batch in (left[first : first + some] for first in range(0, len(left), some)):
            said = iter(await endpoint.request([call for index in batch for call in asked[index]], str))
            for index in batch:
                (intent, amount), (_, *calls) = wanted[index], asked[index]
                held = _at_most(endpoint, intent, next(said))
                trial = _within(trial_of([next(said) for _ in calls]), calls, gas_max)
                if trial.refused is None or held >= amount:
                    found[index] = trial
    return [found.get(index, Trial(gas=TOKEN_GAS_UNKNOWN)) for index in range(len(wanted))]


def _at_most(endpoint: Endpoint, intent: Intent, held: str | RpcFailure | None) -> int:
    if isinstance(held, RpcFailure):
        return intent.amount
    try:
        return min(read_balance(endpoint, intent.token, held), intent.amount)
    except ChainError:
        return intent.amount


async def _retry_natives(
    endpoint: Endpoint, intents: Sequence[Intent], refused: Sequence[Trial], gas_max: GasMax
) -> list[Trial]:
    """Lend the coin for the trial; where the node cannot do that, try without any."""
    del refused
    lent = await _try(endpoint, [_calls(one, one.amount, gas_max, lent=True) for one in intents], gas_max)
    failed = [index for index, trial in enumerate(lent) if trial.failure is not None]
    empty = await _try(endpoint, [_calls(intents[index], 0, gas_max) for index in failed], gas_max)
    for index, trial in zip(failed, empty, strict=True):
        unknown = min(NATIVE_GAS_UNKNOWN, gas_max.of(intents[index]))
        lent[index] = Trial(gas=unknown) if trial.refused is not None else _learned(endpoint, trial)
    return lent


async def _retry_approvals(
    endpoint: Endpoint, intents: Sequence[Intent], failed: Sequence[Trial], gas_max: GasMax
) -> list[Trial]:
    """Believe what was said: an approval takes nothing that could be missing."""
    del intents, gas_max
    return [_learned(endpoint, trial) for trial in failed]


async def _retry_calls(
    endpoint: Endpoint, intents: Sequence[Intent], failed: Sequence[Trial], gas_max: GasMax
) -> list[Trial]:
    """Lend the coin for the trial; where the node cannot do that, and misses the coin, allow as much as can be."""
    lent = await _try(endpoint, [_calls(one, one.amount, gas_max, lent=True) for one in intents], gas_max)
    trials = []
    for first, second in zip(failed, lent, strict=True):
        if second.failure is None:
            trials.append(second)
        elif first.failure is not None and _NOT_EXECUTED.search(first.failure.message):
            trials.append(Trial(gas=gas_max.call))
        else:
            trials.append(_learned(endpoint, first))
    return trials


Retry: TypeAlias = Callable[[Endpoint, Sequence[Intent], Sequence[Trial], GasMax], Awaitable[list[Trial]]]
_RETRIES: Final[dict[Kind, Retry]] = {
    "token": _retry_tokens,
    "native": _retry_natives,
    "approve": _retry_approvals,
    "call": _retry_calls,
}


def _learned(endpoint: Endpoint, trial: Trial) -> Trial:
    if trial.failure is not None:
        raise endpoint.rpc.error("eth_estimateGas", trial.failure)
    return trial


def _calls(intent: Intent, amount: int, gas_max: GasMax, *, lent: bool = False) -> Calls:
    """Return the calls that try an intent. A token is asked for its answer, too: some say false and do nothing."""
    message = message_of(intent, amount)
    tx: dict[str, Any] = {"from": intent.source, "gas": hex(gas_max.of(intent)), "to": message.to}
    tx |= {"value": hex(message.value)} if message.value or not message.data else {}
    tx |= {"data": "0x" + message.data.hex()} if message.data else {}
    override = ({intent.source: {"balance": LENT}},) if lent else ()
    estimate = ("eth_estimateGas", (tx, "latest", *override))
    asks = _kind(intent) in {"token", "approve"}
    return [estimate, ("eth_call", (tx, "latest"))] if asks else [estimate]


async def _try(endpoint: Endpoint, wanted: Sequence[Calls], gas_max: GasMax) -> list[Trial]:
    said = await endpoint.each([call for calls in wanted for call in calls], str)
    answers = iter(said)
    return [_within(trial_of([next(answers) for _ in calls]), calls, gas_max) for calls in wanted]


def _within(trial: Trial, calls: Calls, gas_max: GasMax) -> Trial:
    """Return what was tried, unless it took far more gas than there was: the gas station would bring the coin."""
    given = quantity(calls[0][1][0]["gas"])
    if trial.gas is None or trial.gas <= gas_max.believed(given):
        return trial
    return Trial(failure=RpcFailure(message=f"{trial.gas} gas, of {given} that it was given"))


def trial_of(answers: Sequence[str | RpcFailure | None]) -> Trial:
    """Return what an estimate says, and the answer of the call itself where that was asked for, too."""
    for answer in answers:
        if isinstance(answer, RpcFailure):
            return Trial(refused=reason_of(answer)) if is_revert(answer) else Trial(failure=answer)
    try:
        gas = quantity(str(answers[0]))
        # A token that answers nothing, as USDT on Ethereum does, reverts where it refuses.
        done = all(answer in {"0x", ""} or quantity(str(answer)[:_WORD_CHARS]) for answer in answers[1:])
    except InconsistentChainError:
        return Trial(failure=RpcFailure(message="neither gas nor an answer"))
    return Trial(gas=gas) if done else Trial(refused="it answers that it did not do it")


def is_revert(failure: RpcFailure) -> bool:
    """Return whether the node ran the call, and the chain refused it."""
    if _NOT_EXECUTED.search(failure.message):
        return False
    return failure.code == _REVERTED_CODE or _REVERTED.search(failure.message) is not None


def reason_of(failure: RpcFailure) -> str:
    """Return what the contract said, printable and short; what the node said where the contract was silent."""
    found = _HEX.search(failure.data) if isinstance(failure.data, str) else None
    told = refusal_in(found[1]) if found is not None else ""
    if not told:
        said = _SAID.search(failure.message)
        told = said["reason"] if said is not None else failure.message
    return one_line(told)


async def missing_contracts(endpoint: Endpoint, contracts: Iterable[str]) -> set[str]:
    """Return the contracts at which there is no code: what is said there would succeed and do nothing."""
    wanted = sorted(set(contracts))
    codes = await endpoint.all([("eth_getCode", (contract, "latest")) for contract in wanted], str)
    return {contract for contract, code in zip(wanted, codes, strict=True) if code in {"0x", "", None}}
