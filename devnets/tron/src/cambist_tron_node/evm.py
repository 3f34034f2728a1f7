"""The node's contracts, run for real: an EVM (anvil) that is asked what a call would do, and told what it did.

Anvil mines nothing. A call is traced in the world the node describes (balances, block), priced as the TVM would
(``energy``), and only where it succeeds is what it wrote put into anvil's state, by way of a journal that can go back.

What differs from the TVM: there are no TRC-10 tokens, no TRON opcodes and no TRON precompiles, contracts that
contracts create get the EVM's addresses, and "out of time" is a number of operations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import Any, Final

from cambist.testing.anvil import AnvilClient, AnvilProcess

from .energy import CODE_BYTE_ENERGY, REVERTED, Bill, Pricing, overrun_message
from .journal import Journal, StateKey
from .machine import OUT_OF_ENERGY, REVERT, SUCCESS, Call, Moment, NoContractError, Outcome, World
from .traces import Setting, Trace, steps, trace

# TRON stops a run after 80 ms, which is about as much.
GAS_MAX: Final = 20_000_000
OUT_OF_TIME: Final = "OUT_OF_TIME"
# Beyond, operations are not priced one by one: it would take seconds.
GAS_PRICED_MAX: Final = 4_000_000
REQUEST_CALLS_MAX: Final = 500
TRIES_MAX: Final = 5

_ENDS: Final = (
    ("out of gas", OUT_OF_ENERGY, "Not enough energy for 'JUMPDEST' operation executing"),
    ("invalid jump", "BAD_JUMP_DESTINATION", "Operation with pc isn't 'JUMPDEST'"),
    ("underflow", "STACK_TOO_SMALL", "Expected stack size is larger than the actual one"),
    ("overflow", "STACK_TOO_LARGE", "Expected: overflow 1024 elements stack limit"),
    ("invalid", "ILLEGAL_OPERATION", "Invalid operation code: opCode[fe];"),
    ("not activated", "ILLEGAL_OPERATION", "Invalid operation code"),
)


def anvil_for(chain_id: int) -> AnvilProcess:
    """Return an anvil that contracts can be run on, which see this chain id. It is not started yet."""
    return AnvilProcess([
        "--chain-id", str(chain_id), "--hardfork", "cancun", "--balance", "0", "--no-mining",
        "--gas-price", "0", "--block-base-fee-per-gas", "0", "--disable-min-priority-fee",
        "--disable-block-gas-limit", "--disable-code-size-limit", "--no-request-size-limit",
    ])  # fmt: skip


class AnvilMachine:
    """Runs contracts on anvil; see ``machine.Machine`` for what is promised."""

    def __init__(self, chain_id: int, *, anvil: AnvilClient | None = None) -> None:
        """Choose the chain id that contracts see; ``start`` starts anvil.

        An anvil that is given (see ``anvil_for``) runs already, for one machine at a time, and is left as it was found.
        """
        self._anvil = anvil or anvil_for(chain_id)
        self._is_lent = anvil is not None
        self._stack = AsyncExitStack()
        self._journal = Journal()
        self._factors: dict[bytes, int] = {}
        self._one_at_a_time = asyncio.Lock()
        self._known: World | None = None

    @property
    def _world(self) -> World:
        if self._known is None:
            raise RuntimeError("the machine is not started")
        return self._known

    async def start(self, world: World) -> None:
        self._known = world
        if self._is_lent:
            self._stack.push_async_callback(self.rewind, 0)
        else:
            await self._stack.enter_async_context(self._anvil)

    async def close(self) -> None:
        await self._stack.aclose()

    def energy_factor(self, contract: bytes) -> int:
        return self._factors.get(contract, 0)

    def set_energy_factor(self, contract: bytes, ten_thousandths: int) -> None:
        self._factors[contract] = ten_thousandths

    async def mark(self) -> int:
        return self._journal.mark()

    async def rewind(self, mark: int) -> None:
        async with self._one_at_a_time:
            await self._tell(self._journal.rewind(mark))

    async def call(self, call: Call, moment: Moment) -> Outcome:
        async with self._one_at_a_time:
            self._require_contract(call.contract, None)
            outcome, writes = await self._run(call, Setting({}, moment))
            await self._tell(self._journal.write(writes))
            return outcome

    async def constant(self, call: Call, moment: Moment, mark: int | None = None) -> Outcome:
        async with self._one_at_a_time:
            self._require_contract(call.contract, mark)
            state = {} if mark is None else self._journal.overrides(mark)
            outcome, _ = await self._run(call, Setting(state, moment))
            return outcome

    async def create(self, call: Call, moment: Moment) -> Outcome:
        """Run the creating code where the contract will stand: TRON has chosen the address already."""
        async with self._one_at_a_time:
            state = {"0x" + call.contract.hex(): {"code": "0x" + call.data.hex()}}
            run = Call(call.caller, call.contract, b"", call.energy_limit, call.call_value, call.origin_tx)
            outcome, writes = await self._run(run, Setting(state, moment))
            if outcome.status != SUCCESS:
                return outcome
            deposit, used = CODE_BYTE_ENERGY * len(outcome.output), outcome.energy_used
            if used + deposit > call.energy_limit:
                hint = f"needEnergy[{deposit}], leftEnergy[{call.energy_limit - used}];"
                message = f"Not enough energy for 'save just created contract code' executing: {hint}"
                return Outcome(OUT_OF_ENERGY, call.energy_limit, outcome.energy_penalty, message=message)
            code = {StateKey(call.contract, "code"): "0x" + outcome.output.hex()}
            await self._tell(self._journal.write({**writes, **code}))
            return Outcome(
                SUCCESS, used + deposit, outcome.energy_penalty, outcome.output, outcome.logs, outcome.internal
            )

    def _require_contract(self, contract: bytes, mark: int | None) -> None:
        if not self._journal.has_code(contract, mark):
            raise NoContractError(contract.hex())

    async def _tell(self, calls: Sequence[tuple[str, Sequence[Any]]]) -> None:
        for start in range(0, len(calls), REQUEST_CALLS_MAX):
            await self._anvil.batch(calls[start : start + REQUEST_CALLS_MAX])

    async def _run(self, call: Call, setting: Setting) -> tuple[Outcome, Mapping[StateKey, str]]:
        run, balances = await self._traced(call, setting, GAS_MAX)
        bill = await self._bill(call, setting, run, balances)
        halted_inside = any(frame.halted for frame in run.frames)
        if bill.overrun is not None and not halted_inside:
            with_penalty = self.energy_factor(call.contract) > 0
            message = overrun_message(bill.overrun, call.energy_limit, with_penalty=with_penalty)
            penalty = bill.penalty_at_overrun
            return Outcome(
                OUT_OF_ENERGY, call.energy_limit, penalty, internal=run.internals(undone=True), message=message
            ), {}
        used, penalty = bill.total, bill.penalty
        endless = run.error is None or "out of gas" in run.error.lower()
        if used >= GAS_MAX and call.energy_limit > GAS_MAX and endless:
            return Outcome(
                OUT_OF_TIME, call.energy_limit, penalty, message="CPU timeout for 'JUMP' operation executing"
            ), {}
        if used > call.energy_limit or halted_inside:
            # Inner calls that end for want of energy can be survived, so the run is made with as much as there is.
            scale = max(run.gas_used, 1), max(bill.total, 1)
            run, _ = await self._traced(call, setting, _intrinsic(call) + call.energy_limit * scale[0] // scale[1])
            spent = (run.gas_used - _intrinsic(call)) * scale[1] // scale[0]
            used, penalty = min(spent, call.energy_limit), min(penalty, spent)
        return _outcome(run, call.energy_limit, used, penalty)

    async def _traced(self, call: Call, setting: Setting, gas: int) -> tuple[Trace, Mapping[bytes, int]]:
        """Trace the call with the balances of all accounts that it looks at, which only tracing finds out."""
        balances = {
            address: self._world.balance(address) for address in (call.contract, call.caller, setting.moment.witness)
        }
        for _ in range(TRIES_MAX):
            run = await trace(self._anvil, call, setting, balances, gas)
            wrong = {
                address: self._world.balance(address)
                for address, seen in run.touched.items()
                if address not in balances and self._world.balance(address) != seen
            }
            if not wrong:
                return run, balances
            balances.update(wrong)
        raise RuntimeError("the call looks at other accounts each time")

    async def _bill(self, call: Call, setting: Setting, run: Trace, balances: Mapping[bytes, int]) -> Bill:
        if run.gas_used > GAS_PRICED_MAX:
            return Bill(run.gas_used, 0)
        listed = run.steps
        if listed is None:
            listed = await steps(self._anvil, call, setting, balances, GAS_MAX)
        if not listed:
            return Bill(0, 0)
        pricing = Pricing(call.contract, run.frames, self.energy_factor, self._world.exists)
        return pricing.bill(listed, call.energy_limit)


def _intrinsic(call: Call) -> int:
    """Return what the EVM charges for the transaction itself, which the TVM does not."""
    zeros = call.data.count(0)
    return 21_000 + 4 * zeros + 16 * (len(call.data) - zeros)


def _outcome(run: Trace, limit: int, used: int, penalty: int) -> tuple[Outcome, Mapping[StateKey, str]]:
    if run.error is None:
        return Outcome(SUCCESS, used, penalty, run.output, run.logs, run.internals(undone=False)), run.writes
    internals = run.internals(undone=True)
    if run.error == REVERTED:
        return Outcome(REVERT, used, penalty, run.output, internal=internals, message="REVERT opcode executed"), {}
    error = run.error.lower()
    status, message = next(
        ((status, message) for hint, status, message in _ENDS if hint in error), ("UNKNOWN", "Unknown Exception")
    )
    return Outcome(status, limit, min(penalty, limit), internal=internals, message=message), {}
