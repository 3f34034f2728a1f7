"""What nodes answer to the questions of sending, as far as it is read. They leave out what is 0 or empty."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from cambist_chainkit.reverts import one_line

from .wire import TronLog, TxInfo

MOMENT_MS_MAX: Final = 253_402_300_799_999
"""The last moment of the year 9999: no later one is written as a date."""


class Frozen(Struct, frozen=True):
    """A part of a stake. Without a type, it is for bandwidth."""

    type: str = "BANDWIDTH"
    amount: int = 0


class Leaving(Struct, frozen=True):
    """A part of a stake that was unstaked, and when it can be withdrawn, in milliseconds."""

    unfreeze_amount: int = 0
    unfreeze_expire_time: Annotated[int, Meta(ge=0, le=MOMENT_MS_MAX)] = 0


class EnergyLent(Struct, frozen=True):
    """How much of an account's stake others have the energy of."""

    delegated_frozen_v2: int = msgspec.field(name="delegated_frozenV2_balance_for_energy", default=0)


class Account(Struct, frozen=True):
    """An account; without an address where the network does not know it."""

    address: str = ""
    type: str = "Normal"
    balance: int = 0
    frozen_v2: tuple[Frozen, ...] = msgspec.field(name="frozenV2", default=())
    unfrozen_v2: tuple[Leaving, ...] = msgspec.field(name="unfrozenV2", default=())
    account_resource: EnergyLent = EnergyLent()
    bandwidth_lent: int = msgspec.field(name="delegated_frozenV2_balance_for_bandwidth", default=0)

    @property
    def exists(self) -> bool:
        """Whether the network knows it, which makes it *activated*."""
        return bool(self.address)

    @property
    def is_contract(self) -> bool:
        """Whether code lives there."""
        return self.type == "Contract"


class Resources(Struct, frozen=True):
    """What an account can use up without burning TRX, and how much energy a stake gives on this network."""

    free_net_used: int = msgspec.field(name="freeNetUsed", default=0)
    free_net_limit: int = msgspec.field(name="freeNetLimit", default=0)
    net_used: int = msgspec.field(name="NetUsed", default=0)
    net_limit: int = msgspec.field(name="NetLimit", default=0)
    energy_used: int = msgspec.field(name="EnergyUsed", default=0)
    energy_limit: int = msgspec.field(name="EnergyLimit", default=0)
    total_energy_limit: int = msgspec.field(name="TotalEnergyLimit", default=0)
    total_energy_weight: int = msgspec.field(name="TotalEnergyWeight", default=0)


class Parameter(Struct, frozen=True):
    """One of the values that the network's representatives vote on."""

    key: str
    value: int = 0


class Parameters(Struct, frozen=True):
    parameters: tuple[Parameter, ...] = msgspec.field(name="chainParameter", default=())


class Outcome(Struct, frozen=True):
    """Whether a node took the question; its message is hex."""

    result: bool = False
    code: str = ""
    message: str = ""


class Ran(Struct, frozen=True):
    """What became of a run: FAILED where the contract refused, although the outcome says ``true``."""

    ret: str = ""


class RanTransaction(Struct, frozen=True):
    """The transaction that a node made up for a run."""

    ret: tuple[Ran, ...] = ()


class ConstantCall(Struct, frozen=True):
    """What a contract answered to a call that changes nothing."""

    result: Outcome = Outcome()
    energy_used: int = 0
    energy_penalty: int = 0
    constant_result: tuple[str, ...] = ()
    logs: tuple[TronLog, ...] = ()
    transaction: RanTransaction = RanTransaction()

    @property
    def succeeded(self) -> bool:
        """Whether the call would do on the chain what it is to do."""
        told = text_of(self.result.message)
        return (
            self.result.result
            and not told
            and all(one.ret in {"", "SUCESS", "SUCCESS"} for one in self.transaction.ret)
        )

    @property
    def output(self) -> str:
        """What it returned, in hex."""
        return self.constant_result[0] if self.constant_result else ""


class Lendable(Struct, frozen=True):
    """The largest stake that can be lent now."""

    max_size: int = 0


class Loan(Struct, frozen=True):
    """What one address lends another."""

    for_energy: int = msgspec.field(name="frozen_balance_for_energy", default=0)


class Loans(Struct, frozen=True):
    """All of it: what can be asked back at once, and what is locked."""

    loans: tuple[Loan, ...] = msgspec.field(name="delegatedResource", default=())


class Submitted(Struct, frozen=True):
    """What a node said to a transaction; here, and only here, the message is plain text."""

    result: bool = False
    code: str = ""
    message: str = ""
    txid: str = ""


class Listed(Struct, frozen=True):
    """A transaction that stands in a block."""

    tx_id: str = msgspec.field(name="txID", default="")


class Result(TxInfo):
    """What came of one transaction; nothing where no block holds it."""

    id: str = ""


class Waiting(Struct, frozen=True):
    """The ids of all transactions that wait at a node."""

    tx_ids: tuple[str, ...] = msgspec.field(name="txId", default=())


def text_of(digits: str) -> str:
    """Return a message that a node wrote in hex, printable and short; as it is, where it is none."""
    try:
        told = bytes.fromhex(digits).decode("utf-8", "replace")
    except ValueError:
        told = digits
    return one_line(told)
