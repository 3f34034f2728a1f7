"""What a TRON node knows of accounts, contracts and stakes, and how it goes back to what it knew before.

Records are values; a change writes another record. ``Ledger`` keeps what stood there before, by layers: one for a
transaction, one for a block, one for what waits. So an undone block or a refused transaction costs what it touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

from . import keys
from .params import BLOCK_MS, TRX, Parameters

BANDWIDTH: Final = 0
ENERGY: Final = 1
RESOURCES: Final = ("BANDWIDTH", "ENERGY")

NORMAL: Final = 0
CONTRACT: Final = 2

_ACTIVE_OPERATIONS: Final = bytes.fromhex("7fff1fc0033e").ljust(32, b"\0")

Key: TypeAlias = tuple[Any, ...]
Layer: TypeAlias = dict[Key, Any]


class Resource(msgspec.Struct, frozen=True):
    """One account's stake in one resource, and how much of it is used up.

    ``used`` was right in slot ``used_at`` and recovers over ``window`` thousandths of slots, a day at most.
    """

    staked: int = 0
    lent: int = 0
    borrowed: int = 0
    used: int = 0
    used_at: int = 0
    window: int = 0


class Unstake(msgspec.Struct, frozen=True):
    """Stake on its way back to the balance."""

    resource: int
    amount: int
    expires_ms: int


class Permission(msgspec.Struct, frozen=True):
    """Who may act for an account. ``keys`` are addresses and weights."""

    kind: int
    number: int
    name: str
    threshold: int
    keys: tuple[tuple[bytes, int], ...]
    operations: bytes = b""


class Account(msgspec.Struct, frozen=True):
    """An activated account or a contract's."""

    address: bytes
    balance: int = 0
    kind: int = NORMAL
    created_ms: int = 0
    operated_ms: int = 0
    free_used: int = 0
    free_used_at: int = 0
    net: Resource = Resource()
    energy: Resource = Resource()
    unstaking: tuple[Unstake, ...] = ()
    assets: tuple[tuple[str, int], ...] = ()
    owner: Permission | None = None
    actives: tuple[Permission, ...] = ()
    witness: bool = False

    def resource(self, which: int) -> Resource:
        return self.net if which == BANDWIDTH else self.energy

    def having(self, which: int, resource: Resource) -> Account:
        """Return the account with another record of a resource."""
        return msgspec.structs.replace(self, **{"net" if which == BANDWIDTH else "energy": resource})

    def permission(self, number: int) -> Permission | None:
        """Return who may act under this number: 0 is the owner."""
        if number == 0:
            return self.owner or default_owner(self.address)
        return next((each for each in self.actives if each.number == number), None)


class Contract(msgspec.Struct, frozen=True):
    """What is kept about a contract, beside its code and storage, which are the machine's."""

    address: bytes
    origin: bytes
    name: str
    abi: bytes
    bytecode: bytes
    runtime: bytes
    consume_user_percent: int
    origin_energy_limit: int


class Delegation(msgspec.Struct, frozen=True):
    """Stake that works for somebody else: amount and end of the lock, by resource."""

    sun: tuple[int, int] = (0, 0)
    expires_ms: tuple[int, int] = (0, 0)

    def plus(self, which: int, sun: int, expires_ms: int) -> Delegation:
        """Return it with so much more of one resource, locked until then."""
        amounts, ends = list(self.sun), list(self.expires_ms)
        amounts[which] += sun
        ends[which] = expires_ms
        return Delegation((amounts[0], amounts[1]), (ends[0], ends[1]))


class Ledger:
    """Records by key, with layers of what they were before."""

    def __init__(self) -> None:
        self._records: dict[Key, Any] = {}
        self._layers: list[Layer] = []

    def get(self, key: Key) -> Any:  # noqa: ANN401 - the key tells what it is
        """Return the newest record, None where there is none."""
        return self._records.get(key)

    def put(self, key: Key, record: Any) -> None:  # noqa: ANN401 - likewise
        """Write a record; None takes it away."""
        if self._layers:
            self._layers[-1].setdefault(key, self._records.get(key))
        if record is None:
            self._records.pop(key, None)
        else:
            self._records[key] = record

    def begin(self) -> None:
        """Start a layer: what is written from here on can be taken back at once."""
        self._layers.append({})

    def rollback(self) -> None:
        """Take back the newest layer."""
        self.undo(self._layers.pop())

    def merge(self) -> None:
        """Make the newest layer part of the one below."""
        newest = self._layers.pop()
        below = self._layers[-1]
        for key, before in newest.items():
            below.setdefault(key, before)

    def close(self) -> Layer:
        """End the newest layer, which is the only one, and return how to undo it."""
        return self._layers.pop()

    def undo(self, layer: Layer) -> None:
        """Write what stood there before. Only the newest of the closed layers can be undone."""
        for key, before in layer.items():
            if before is None:
                self._records.pop(key, None)
            else:
                self._records[key] = before

    @property
    def pending(self) -> Sequence[Layer]:
        """The open layers, oldest first."""
        return self._layers


class Past:
    """The records as they were before some layers, which are given oldest first."""

    def __init__(self, ledger: Ledger, layers: Sequence[Layer]) -> None:
        self._ledger = ledger
        self._layers = layers

    def get(self, key: Key) -> Any:  # noqa: ANN401 - the key tells what it is
        for layer in self._layers:
            if key in layer:
                return layer[key]
        return self._ledger.get(key)


class State:
    """Reads and writes records by what they are. ``now_ms`` is the head's time, as contracts of the system see it."""

    def __init__(self, records: Ledger | Past, parameters: Parameters, now_ms: int = 0) -> None:
        self._records = records
        self.parameters = parameters
        self.now_ms = now_ms

    @property
    def slot(self) -> int:
        """The head's time in blocks: recovery is counted in it."""
        return self.now_ms // BLOCK_MS

    @property
    def ledger(self) -> Ledger:
        """Where it writes. Raises TypeError for a state of the past."""
        if not isinstance(self._records, Ledger):
            raise TypeError("the past cannot be changed")
        return self._records

    # --- Accounts ---

    def account(self, address: bytes) -> Account | None:
        """Return an activated account."""
        found: Account | None = self._records.get(("account", address))
        return found

    def known(self, address: bytes) -> Account:
        """Return an account that is there."""
        found = self.account(address)
        if found is None:
            raise LookupError(f"there is no account {keys.base58(address)}")
        return found

    def put(self, account: Account) -> None:
        self.ledger.put(("account", account.address), account)

    def change(self, address: bytes, **fields: Any) -> Account:  # noqa: ANN401 - fields of Account
        account = msgspec.structs.replace(self.known(address), **fields)
        self.put(account)
        return account

    def create(self, address: bytes, kind: int = NORMAL) -> Account:
        owner = default_owner(address) if kind == NORMAL else None
        actives = (default_active(address),) if kind == NORMAL else ()
        account = Account(address, kind=kind, created_ms=self.now_ms, owner=owner, actives=actives)
        self.put(account)
        return account

    def credit(self, address: bytes, sun: int) -> None:
        """Add to a balance, which must not go below zero."""
        balance = self.known(address).balance + sun
        if balance < 0:
            raise ValueError(f"{keys.base58(address)} would have {balance} sun")
        self.change(address, balance=balance)

    def burn(self, address: bytes, sun: int) -> None:
        """Take from a balance, and count it as gone."""
        self.credit(address, -sun)
        self.ledger.put(("burned",), self.burned + sun)

    @property
    def burned(self) -> int:
        """All sun that was ever burned."""
        return self._records.get(("burned",)) or 0

    # --- Contracts ---

    def contract(self, address: bytes) -> Contract | None:
        found: Contract | None = self._records.get(("contract", address))
        return found

    def put_contract(self, contract: Contract) -> None:
        self.ledger.put(("contract", contract.address), contract)

    # --- Stakes ---

    def weight(self, which: int) -> int:
        """Return how much is staked in all for a resource, in TRX."""
        others = self.parameters.bandwidth_weight if which == BANDWIDTH else self.parameters.energy_weight
        return others + (self._records.get(("weight", which)) or 0)

    def total(self, which: int) -> int:
        """Return how much of a resource all stakes share a day."""
        return self.parameters.bandwidth_total if which == BANDWIDTH else self.parameters.energy_total

    def add_weight(self, which: int, trx: int) -> None:
        """Count stake that came or went."""
        self.ledger.put(("weight", which), (self._records.get(("weight", which)) or 0) + trx)

    def limit(self, which: int, account: Account) -> int:
        """Return how much of a resource an account's stake gives it a day."""
        resource = account.resource(which)
        weight = self.weight(which)
        return int((resource.staked + resource.borrowed) / TRX * (self.total(which) / weight)) if weight else 0

    def delegation(self, owner: bytes, receiver: bytes, *, locked: bool) -> Delegation | None:
        found: Delegation | None = self._records.get(("delegation", owner, receiver, locked))
        return found

    def put_delegation(self, owner: bytes, receiver: bytes, delegation: Delegation | None, *, locked: bool) -> None:
        """Write what one account lent another; None or nothing takes it away."""
        kept = delegation if delegation is not None and any(delegation.sun) else None
        self.ledger.put(("delegation", owner, receiver, locked), kept)
        still = kept is not None or self.delegation(owner, receiver, locked=not locked) is not None
        self._index("receivers", owner, receiver, still=still)
        self._index("lenders", receiver, owner, still=still)

    def partners(self, side: str, address: bytes) -> Mapping[bytes, None]:
        """Return to whom an account lends ("receivers"), or who lends it ("lenders")."""
        return self._records.get((side, address)) or {}

    def _index(self, side: str, address: bytes, partner: bytes, *, still: bool) -> None:
        partners = dict(self.partners(side, address))
        if still:
            partners[partner] = None
        else:
            partners.pop(partner, None)
        self.ledger.put((side, address), partners or None)

    # --- Transactions ---

    def block_number(self, tx_id: bytes) -> int | None:
        found: int | None = self._records.get(("tx", tx_id))
        return found

    def put_block_number(self, tx_id: bytes, number: int) -> None:
        self.ledger.put(("tx", tx_id), number)


def default_owner(address: bytes) -> Permission:
    """Return the permission that every account starts with: its own key alone."""
    return Permission(0, 0, "owner", 1, ((address, 1),))


def default_active(address: bytes) -> Permission:
    """Return the other permission that every account starts with."""
    return Permission(2, 2, "active", 1, ((address, 1),), _ACTIVE_OPERATIONS)


def unlocked(delegation: Delegation, now_ms: int) -> Iterator[tuple[int, int]]:
    """Yield resource and sun of what is not locked any more."""
    for which in (BANDWIDTH, ENERGY):
        if delegation.expires_ms[which] < now_ms and delegation.sun[which]:
            yield which, delegation.sun[which]
