"""Asks anvil what a call would do: the tree of its frames, its logs, what it would write, and each operation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from cambist.testing.anvil import AnvilClient

from .energy import Frame, Step
from .journal import StateKey
from .machine import Call, Internal, Log, Moment

GAS_AT_ONCE: Final = 300_000

_ZERO_WORD: Final = "0x" + "00" * 32
_CALLS: Final = {"tracer": "callTracer", "tracerConfig": {"withLog": True}}
_WRITES: Final = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True, "disableCode": True}}
_TOUCHED: Final = {"tracer": "prestateTracer", "tracerConfig": {"disableCode": True}}
_STEPS: Final = {"disableStack": True, "disableMemory": True, "disableStorage": True}
_NOTES: Final = {"CREATE": "create", "CREATE2": "create", "SELFDESTRUCT": "suicide"}


class _Log(msgspec.Struct):
    address: str
    topics: list[str]
    data: str
    index: str = "0x0"


class _Frame(msgspec.Struct, rename="camel"):
    type: str
    from_: str = msgspec.field(name="from")
    to: str | None = None
    value: str = "0x0"
    gas_used: str = "0x0"
    input: str = "0x"
    output: str = "0x"
    error: str | None = None
    calls: list[_Frame] = []
    logs: list[_Log] = []


class _Account(msgspec.Struct):
    balance: str = "0x0"
    code: str = "0x"
    nonce: int = 0
    storage: dict[str, str] = {}


class _Writes(msgspec.Struct):
    pre: dict[str, _Account]
    post: dict[str, _Account]


class Trace(msgspec.Struct, frozen=True):
    """What a call would do. ``writes`` leaves balances out: those belong to the node.

    ``steps`` is every operation, None where there are so many that they must be asked for.
    """

    error: str | None
    gas_used: int
    output: bytes
    frames: Sequence[Frame]
    logs: tuple[Log, ...]
    writes: Mapping[StateKey, str]
    touched: Mapping[bytes, int]
    steps: Sequence[Step] | None

    def internals(self, *, undone: bool) -> tuple[Internal, ...]:
        """Return what TRON keeps of the frames: not those that it refuses to begin, nor calls of built-in contracts."""
        return tuple(
            Internal(
                frame.caller,
                frame.context,
                0 if frame.kind in {"DELEGATECALL", "STATICCALL"} else frame.value,
                _NOTES.get(frame.kind, "call"),
                rejected=undone or frame.rejected,
                data=frame.data,
            )
            for frame in self.frames
            if int.from_bytes(frame.target, "big") > 0xFF and not frame.refused
        )


class Setting(msgspec.Struct, frozen=True):
    """In which world a call is traced: what differs from anvil's present, and the block it runs in."""

    state: Mapping[str, dict[str, Any]]
    moment: Moment

    def options(self, balances: Mapping[bytes, int]) -> dict[str, Any]:
        """Return anvil's options, with these balances."""
        state = {address: dict(entry) for address, entry in self.state.items()}
        for address, balance in balances.items():
            state.setdefault(hex_of(address), {})["balance"] = hex(balance)
        block = {
            "number": hex(self.moment.number),
            "time": hex(self.moment.timestamp_ms // 1000),
            "coinbase": hex_of(self.moment.witness or bytes(20)),
        }
        return {"stateOverrides": state, "blockOverrides": block}


async def trace(anvil: AnvilClient, call: Call, setting: Setting, balances: Mapping[bytes, int], gas: int) -> Trace:
    """Return what the call would do. Code that is created is called where it stands."""
    tx, options = _transaction(call, gas), setting.options(balances)
    asked: list[tuple[str, Sequence[Any]]] = [
        ("debug_traceCall", [tx, "latest", {**tracer, **options}]) for tracer in (_CALLS, _WRITES, _TOUCHED)
    ]
    asked.append(_stepwise(call, options, min(gas, GAS_AT_ONCE)))
    calls, writes, touched, listed = await anvil.batch(asked)
    root = msgspec.convert(calls, _Frame)
    return Trace(
        error=root.error,
        gas_used=int(root.gas_used, 16),
        output=_bytes(root.output),
        frames=tuple(_frames(root.calls, undone=False)),
        logs=tuple(log for _, log in sorted(_logs(root), key=lambda pair: pair[0])),
        writes=_changed_keys(msgspec.convert(writes, _Writes), root, call.caller),
        touched={_bytes(address): int(found["balance"], 16) for address, found in touched.items()},
        # With less gas it may have ended sooner, or otherwise.
        steps=_steps(listed) if listed["gas"] == int(root.gas_used, 16) else None,
    )


async def steps(
    anvil: AnvilClient, call: Call, setting: Setting, balances: Mapping[bytes, int], gas: int
) -> Sequence[Step]:
    """Return every operation that the call would run."""
    return _steps(await anvil.call(*_stepwise(call, setting.options(balances), gas)))


def hex_of(address: bytes) -> str:
    return "0x" + address.hex()


def _stepwise(call: Call, options: Mapping[str, Any], gas: int) -> tuple[str, Sequence[Any]]:
    return "debug_traceCall", [_transaction(call, gas), "latest", {**_STEPS, **options}]


def _steps(answer: Mapping[str, Any]) -> Sequence[Step]:
    return msgspec.convert(answer["structLogs"], list[Step])


def _transaction(call: Call, gas: int) -> Mapping[str, str]:
    return {
        "from": hex_of(call.caller),
        "to": hex_of(call.contract),
        "gas": hex(gas),
        "gasPrice": "0x0",
        "value": hex(call.call_value),
        "data": "0x" + call.data.hex(),
    }


def _frames(calls: Sequence[_Frame], *, undone: bool) -> Iterator[Frame]:
    for inner in calls:
        rejected = undone or inner.error is not None
        yield Frame(
            kind=inner.type,
            caller=_bytes(inner.from_),
            target=_bytes(inner.to or "0x" + "00" * 20),
            value=int(inner.value, 16),
            data=_bytes(inner.input),
            error=inner.error,
            rejected=rejected,
        )
        yield from _frames(inner.calls, undone=rejected)


def _logs(frame: _Frame) -> Iterator[tuple[int, Log]]:
    """Yield what was logged and stands, with its place in the whole run."""
    if frame.error is None:
        for log in frame.logs:
            topics = tuple(_bytes(topic) for topic in log.topics)
            yield int(log.index, 16), Log(_bytes(log.address), topics, _bytes(log.data))
        for inner in frame.calls:
            yield from _logs(inner)


def _changed_keys(writes: _Writes, root: _Frame, caller: bytes) -> Mapping[StateKey, str]:
    if root.error is not None:
        return {}
    found: dict[StateKey, str] = {}
    for address, before in writes.pre.items():
        for slot in before.storage:
            found[StateKey(_bytes(address), "slot", slot)] = _ZERO_WORD
    for address, after in writes.post.items():
        account = _bytes(address)
        for slot, value in after.storage.items():
            found[StateKey(account, "slot", slot)] = value
        if after.nonce and account != caller:
            found[StateKey(account, "nonce")] = hex(after.nonce)
    found.update(_created(root))
    return found


def _created(frame: _Frame) -> Mapping[StateKey, str]:
    if frame.error is not None:
        return {}
    found: dict[StateKey, str] = {}
    if frame.type in {"CREATE", "CREATE2"} and frame.to is not None:
        found[StateKey(_bytes(frame.to), "code")] = frame.output
    for inner in frame.calls:
        found.update(_created(inner))
    return found


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text[2:])
