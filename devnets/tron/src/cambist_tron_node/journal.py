"""Code and storage of all contracts, with every former value, so that anvil can be set back to an earlier state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

ENTRIES_MAX: Final = 1_000_000

_NO_CODE: Final = "0x"
_ZERO: Final = "0x" + "00" * 32

Kind = Literal["code", "nonce", "slot"]


class StateKey(msgspec.Struct, frozen=True):
    """One thing that a contract keeps; ``slot`` is a word as hex, empty for code and nonce."""

    address: bytes
    kind: Kind
    slot: str = ""


_EMPTY: Final[Mapping[Kind, str]] = {"code": _NO_CODE, "nonce": "0x0", "slot": _ZERO}


class Journal:
    """The present value of every key, and all former ones, newest last."""

    def __init__(self) -> None:
        self._present: dict[StateKey, str] = {}
        self._former: list[tuple[StateKey, str]] = []
        self._forgotten = 0

    def has_code(self, address: bytes, mark: int | None = None) -> bool:
        """Tell whether a contract stands there, now or at a mark."""
        key = StateKey(address, "code")
        if mark is not None:
            for former_key, value in self._since(mark):
                if former_key == key:
                    return value != _NO_CODE
        return self._present.get(key, _NO_CODE) != _NO_CODE

    def mark(self) -> int:
        """Name the present."""
        return self._forgotten + len(self._former)

    def write(self, values: Mapping[StateKey, str]) -> Sequence[tuple[str, Sequence[Any]]]:
        """Change keys, and return the calls that change them in anvil."""
        changed = {key: value for key, value in values.items() if self._get(key) != value}
        for key, value in changed.items():
            self._former.append((key, self._get(key)))
            self._present[key] = value
        surplus = len(self._former) - ENTRIES_MAX
        if surplus > 0:
            del self._former[:surplus]
            self._forgotten += surplus
        return [_setting(key, value) for key, value in changed.items()]

    def rewind(self, mark: int) -> Sequence[tuple[str, Sequence[Any]]]:
        """Go back to a mark, and return the calls that take anvil there. Raises LookupError where it is too old."""
        former = self._at(mark)
        self._present.update(former)
        del self._former[mark - self._forgotten :]
        return [_setting(key, value) for key, value in former.items()]

    def overrides(self, mark: int) -> Mapping[str, dict[str, Any]]:
        """Return what to tell anvil in a call that is to see a mark's state, by address as hex."""
        found: dict[str, dict[str, Any]] = {}
        for key, value in self._at(mark).items():
            entry = found.setdefault("0x" + key.address.hex(), {})
            if key.kind == "slot":
                entry.setdefault("stateDiff", {})[key.slot] = value
            else:
                entry[key.kind] = value
        return found

    def _get(self, key: StateKey) -> str:
        return self._present.get(key, _EMPTY[key.kind])

    def _since(self, mark: int) -> Sequence[tuple[StateKey, str]]:
        if not self._forgotten <= mark <= self.mark():
            raise LookupError(f"the state at {mark} is no longer known")
        return self._former[mark - self._forgotten :]

    def _at(self, mark: int) -> Mapping[StateKey, str]:
        """Return what differs at a mark: of several former values of a key, the oldest."""
        return dict(reversed(self._since(mark)))


def _setting(key: StateKey, value: str) -> tuple[str, Sequence[Any]]:
    address = "0x" + key.address.hex()
    if key.kind == "slot":
        return "anvil_setStorageAt", [address, key.slot, value]
    return "anvil_setCode" if key.kind == "code" else "anvil_setNonce", [address, value]
