"""Tries calls one after the other on a node's newest state, without sending anything.

Only ``eth_simulateV1`` lets a call see what those before it did. Where a node lacks it, one call alone is estimated,
which tells no logs; several are for another node. Allowances are not written into a node's state by hand: where a token
keeps them, only the token knows.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from cambist.plugin import Call, CallTrial, InconsistentChainError, Log, Movement, Units
from cambist_chainkit.answers import UnsupportedError
from cambist_chainkit.eip55 import spell

from .config import ChainSetup
from .decode import TRANSFER_TOPIC, TRANSFER_TOPICS
from .endpoint import Endpoint
from .gas import LENT, reason_of, trial_of
from .logs import log_of
from .quantities import quantity
from .wire import RpcFailure, SimulatedBlock, SimulatedCall

_METHOD: Final = "eth_simulateV1"
_FAILED: Final = 0
_SUCCEEDED: Final = 1
_TRANSFER: Final = bytes.fromhex(TRANSFER_TOPIC[2:])
_WORD: Final = 32


async def try_calls(
    endpoint: Endpoint, setup: ChainSetup, sender: str, calls: Sequence[Call]
) -> Sequence[CallTrial] | None:
    """Return what came of each call; None where the endpoint cannot try so many together. Raises ChainError."""
    gas_max = setup.network.call_gas_max
    txs = [_tx(sender, call, gas_max) for call in calls]
    if not endpoint.tries_alone():
        try:
            block = await _simulated(endpoint, sender, txs)
        except UnsupportedError:
            endpoint.note_tries_alone()
        else:
            endpoint.simulates = True
            return _in_turn([_trial(one, gas_max, setup) for one in block.calls])
    return [await _estimated(endpoint, sender, txs[0])] if len(txs) == 1 else None


def _tx(sender: str, call: Call, gas_max: int) -> dict[str, Any]:
    tx = {"from": sender, "to": call.to_address, "data": "0x" + call.data.hex(), "gas": hex(gas_max)}
    return tx | ({"value": hex(call.value)} if call.value else {})


async def _simulated(endpoint: Endpoint, sender: str, txs: Sequence[dict[str, Any]]) -> SimulatedBlock:
    """Try them in one block, in which the sender has native coin."""
    one_block = {"stateOverrides": {sender: {"balance": LENT}}, "calls": txs}
    asked = {"blockStateCalls": [one_block], "validation": False, "traceTransfers": False}
    blocks = await endpoint.rpc.call(_METHOD, (asked, "latest"), list[SimulatedBlock])
    if blocks is None or len(blocks) != 1 or len(blocks[0].calls) != len(txs):
        raise InconsistentChainError(f"{endpoint.name} tried other calls than it was asked to")
    return blocks[0]


def _trial(one: SimulatedCall, gas_max: int, setup: ChainSetup) -> CallTrial:
    status, gas = quantity(one.status), quantity(one.gas_used)
    if status not in {_FAILED, _SUCCEEDED} or gas > gas_max:
        raise InconsistentChainError(f"a call was tried with status {status} and {gas} gas, of {gas_max}")
    if status == _FAILED:
        return CallTrial(refused=_reason(one))
    if one.error is not None:
        raise InconsistentChainError("a call was tried that succeeded with an error")
    logs = tuple(log_of(log, ordinal) for ordinal, log in enumerate(one.logs))
    tokens = {token.contract for token in setup.info.tokens}
    return CallTrial(work=gas, logs=logs, moved=tuple(_movements(logs, tokens)))


def _movements(logs: Sequence[Log], tokens: Collection[str | None]) -> Iterator[Movement]:
    """Yield the transfers of these tokens. One that is written in another way moves nobody knows what: none of it."""
    for log in logs:
        is_transfer = len(log.topics) == TRANSFER_TOPICS and log.topics[0] == _TRANSFER and len(log.data) == _WORD
        if is_transfer and log.address in tokens:
            source, recipient = (spell(topic[-20:].hex()) for topic in log.topics[1:])
            yield Movement(
                contract=log.address, source=source, recipient=recipient, amount=Units(int.from_bytes(log.data))
            )


def _reason(one: SimulatedCall) -> str:
    """Return what the contract said, which stands in the error with some nodes, and only in the output with others."""
    error = one.error or RpcFailure(message="it fails")
    told = isinstance(error.data, str) and error.data.removeprefix("0x")
    return reason_of(error if told else RpcFailure(message=error.message, data=one.return_data)) or "it fails"


def _in_turn(trials: Sequence[CallTrial]) -> Sequence[CallTrial]:
    """Refuse what follows a refused call."""
    first = next((index for index, trial in enumerate(trials) if trial.refused is not None), len(trials))
    rest = [CallTrial(refused="the call before it is refused") for _ in trials[first + 1 :]]
    return [*trials[: first + 1], *rest]


async def _estimated(endpoint: Endpoint, sender: str, tx: dict[str, Any]) -> CallTrial:
    """Try one call alone, with native coin where the node can lend some."""
    override = {sender: {"balance": LENT}}
    asked = [("eth_estimateGas", (tx, "latest", override)), ("eth_estimateGas", (tx, "latest"))]
    trials = [trial_of([answer]) for answer in await endpoint.each(asked, str)]
    learned = next((trial for trial in trials if trial.failure is None), trials[-1])
    if learned.failure is not None:
        raise endpoint.rpc.error("eth_estimateGas", learned.failure)
    return CallTrial(work=learned.gas, refused=learned.refused)
