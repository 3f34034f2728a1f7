"""What the TVM charges for a run that a real EVM has traced.

The two machines execute alike and charge differently. The EVM's prices are those of Cancun; the TVM's are TRON's
``EnergyCost``: no access lists, no refunds, no gas for calldata, storage at 50, 5,000 and 20,000. A contract in great
demand has an energy factor: each of its operations costs that share more, rounded down one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

FACTOR_UNIT: Final = 10_000
CODE_BYTE_ENERGY: Final = 200

_STIPEND: Final = 2_300
_VALUE_CALL: Final = 9_000
_NEW_ACCOUNT: Final = 25_000
_COLD: Final = 2_600
_WARM: Final = 100
_PRECOMPILES: Final = frozenset(bytes(19) + bytes([number]) for number in range(1, 11))

REVERTED: Final = "execution reverted"

CALL_OPS: Final = frozenset({"CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"})
CREATE_OPS: Final = frozenset({"CREATE", "CREATE2"})
FRAME_OPS: Final = CALL_OPS | CREATE_OPS | {"SELFDESTRUCT"}

_FIXED: Final = {"SLOAD": 50, "BALANCE": 20, "EXTCODESIZE": 20, "EXTCODEHASH": 400}
# Memory that grows costs the same on both; what is charged beside it differs.
_CHEAPER_BY: Final = {
    "MLOAD": 2, "MSTORE": 2, "MSTORE8": 2, "CALLDATACOPY": 3, "CODECOPY": 3, "RETURNDATACOPY": 3,
}  # fmt: skip


class Step(msgspec.Struct, frozen=True, rename="camel"):
    """One operation as the EVM traced it: ``gas`` is what its frame had left before it."""

    op: str
    gas: int
    gas_cost: int
    depth: int


class Frame(msgspec.Struct, frozen=True):
    """A call, creation or self-destruction inside a run, in the order of execution."""

    kind: str
    caller: bytes
    target: bytes
    value: int
    data: bytes
    error: str | None
    rejected: bool
    """Whether it, or a frame around it, was undone."""

    @property
    def halted(self) -> bool:
        """Whether it ended by a fault, which takes all energy it was given, and not by going back of its own will."""
        return self.error not in {None, REVERTED} and not self.refused

    @property
    def refused(self) -> bool:
        """Whether it never began, because there is too little to send along."""
        return "insufficient balance" in (self.error or "")

    @property
    def context(self) -> bytes:
        """Return the contract whose storage it works on, and whose energy factor counts."""
        return self.caller if self.kind in {"CALLCODE", "DELEGATECALL"} else self.target


class Overrun(msgspec.Struct, frozen=True):
    """The operation of the outermost frame that the energy did not suffice for."""

    op: str
    cost: int
    penalty: int
    used: int


class Bill(msgspec.Struct, frozen=True):
    """What a run costs in energy.

    ``overrun`` is set where its own operations, and not those of contracts it calls, are more than it was given.
    """

    total: int
    penalty: int
    overrun: Overrun | None = None
    penalty_at_overrun: int = 0


class Pricing:
    """Prices one run. ``factor`` gives a contract's energy factor, ``exists`` tells of an account before the run."""

    def __init__(
        self,
        contract: bytes,
        frames: Sequence[Frame],
        factor: Callable[[bytes], int],
        exists: Callable[[bytes], bool],
    ) -> None:
        """Take what is needed beside the steps; each pricing is used once."""
        self._frames: Iterator[Frame] = iter(frames)
        self._factor = factor
        self._exists = exists
        self._born: set[bytes] = set()
        self._factors = [factor(contract)]

    def bill(self, steps: Sequence[Step], limit: int) -> Bill:
        """Return the cost of the whole run, and where it went over the limit."""
        saved = penalties = 0
        overrun: Overrun | None = None
        penalty_at_overrun = 0
        for index, step in enumerate(steps):
            del self._factors[step.depth :]
            factor = self._factors[-1]
            cost, gas = self._cost(step, index, steps)
            penalty = cost * (FACTOR_UNIT + factor) // FACTOR_UNIT - cost
            used = steps[0].gas - step.gas - saved + penalties
            if overrun is None and step.depth == 1 and used <= limit < used + cost + penalty:
                overrun = Overrun(step.op, cost, penalty, used)
                penalty_at_overrun = penalties
            saved += gas - cost
            penalties += penalty
        last = steps[-1]
        total = steps[0].gas - (last.gas - last.gas_cost) - saved + penalties
        return Bill(total, penalties, overrun, penalty_at_overrun)

    def _cost(self, step: Step, index: int, steps: Sequence[Step]) -> tuple[int, int]:
        """Return what the operation itself costs on the TVM, and what it cost on the EVM."""
        op, gas = step.op, step.gas_cost
        if op in FRAME_OPS:
            return self._frame_cost(step, steps[index + 1] if index + 1 < len(steps) else None)
        if op in _FIXED:
            return _FIXED[op], gas
        if op in _CHEAPER_BY:
            return gas - _CHEAPER_BY[op], gas
        if op == "SSTORE":
            # What the EVM charges 100 for is written a second time; TRON charges each time anew.
            return 20_000 if gas >= 20_000 else 5_000, gas
        if op == "EXP":
            return 10 + (gas - 10) // 50 * 10, gas
        if op == "EXTCODECOPY":
            return gas - (_COLD if gas >= _COLD else _WARM) + 20, gas
        return gas, gas

    def _frame_cost(self, step: Step, following: Step | None) -> tuple[int, int]:
        frame = next(self._frames, None)
        if frame is None:
            raise ValueError(f"the trace tells nothing of a {step.op}")
        if step.op == "SELFDESTRUCT":
            return (_NEW_ACCOUNT if self._is_dead(frame.target) else 0), step.gas_cost
        if following is None:
            return step.gas_cost, step.gas_cost  # it ended the run: not enough gas even for the operation
        entered = following.depth > step.depth
        if entered:
            self._factors.append(self._factor(frame.context))
        if step.op in CREATE_OPS:
            self._born.add(frame.target)
            own = step.gas_cost - following.gas if entered else step.gas - following.gas
            words = (len(frame.data) + 31) // 32
            return own - 2 * words, own
        stipend = _STIPEND if frame.value and step.op in {"CALL", "CALLCODE"} else 0
        own = step.gas_cost - (following.gas - stipend) if entered else step.gas - following.gas + stipend
        return self._call_cost(frame, own), own

    def _call_cost(self, frame: Frame, own: int) -> int:
        if frame.target in _PRECOMPILES:
            return own - _WARM + 40
        cost = 40
        if frame.value > 0 and frame.kind in {"CALL", "CALLCODE"}:
            own -= _VALUE_CALL
            cost += _VALUE_CALL
            if own >= _NEW_ACCOUNT:
                own -= _NEW_ACCOUNT
            if frame.kind == "CALL" and self._is_dead(frame.target):
                cost += _NEW_ACCOUNT
            if frame.error is None:
                self._born.add(frame.target)
        return cost + own - (_COLD if own >= _COLD else _WARM)

    def _is_dead(self, address: bytes) -> bool:
        return address not in self._born and not self._exists(address)


def overrun_message(overrun: Overrun, limit: int, *, with_penalty: bool) -> str:
    """Return TRON's words on an operation that the energy did not suffice for."""
    if overrun.op in CALL_OPS:
        cost, left = overrun.cost + overrun.penalty, limit - overrun.used
        return f"Not enough energy for '{overrun.op}' operation executing: opEnergy[{cost}], programEnergy[{left}]"
    penalty = f" penaltyEnergy[{overrun.penalty}]," if with_penalty else ""
    return (
        f"Not enough energy for '{overrun.op}' operation executing: curInvokeEnergyLimit[{limit}],"
        f" curOpEnergy[{overrun.cost}],{penalty} usedEnergy[{overrun.used}]"
    )
