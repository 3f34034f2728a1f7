"""One transaction as a node handles it: bytes, id, what it asks for, and its JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final

from google.protobuf.message import DecodeError, Message
from sha3 import keccak_256

from . import keys, proto
from .schema import ENUMS

CREATE_ACCOUNT: Final = "AccountCreateContract"
TRANSFER: Final = "TransferContract"
TRANSFER_ASSET: Final = "TransferAssetContract"
CREATE_CONTRACT: Final = "CreateSmartContract"
TRIGGER: Final = "TriggerSmartContract"
UPDATE_PERMISSIONS: Final = "AccountPermissionUpdateContract"
STAKE: Final = "FreezeBalanceV2Contract"
UNSTAKE: Final = "UnfreezeBalanceV2Contract"
WITHDRAW: Final = "WithdrawExpireUnfreezeContract"
DELEGATE: Final = "DelegateResourceContract"
UNDELEGATE: Final = "UnDelegateResourceContract"

_KINDS: Final = ENUMS["CONTRACT_TYPE"]
_KIND_NAMES: Final = {number: name for name, number in _KINDS.items()}


class NoContractError(ValueError):
    """The transaction holds nothing that this node knows."""


class Transaction:
    """A transaction; the message in ``proto`` must not be changed any more."""

    def __init__(self, message: Any) -> None:  # noqa: ANN401 - the classes are made at run time
        """Keep it without what some node answered about it: results are the node's own business."""
        self.proto = message
        del message.ret[:]
        self.raw: bytes = message.raw_data.SerializeToString()
        self.id: bytes = hashlib.sha256(self.raw).digest()
        self.size: int = message.ByteSize()
        self.received_ms = 0

    @classmethod
    def parse(cls, raw: bytes) -> Transaction:
        """Read a transaction's bytes. Raises google.protobuf's DecodeError."""
        return cls(proto.parse("Transaction", raw))

    @classmethod
    def from_json(cls, shown: Mapping[str, Any], *, visible: bool = False) -> Transaction:
        """Read a transaction as clients send it. Raises MalformedError; contracts of unknown kinds are dropped."""
        try:
            raw = dict(shown["raw_data"])
            contracts = [
                {**contract, "parameter": _packed(contract, visible=visible)}
                for contract in raw.get("contract") or ()
                if contract["type"] in _KINDS
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise proto.MalformedError(f"raw_data: {error}") from error
        whole = {**shown, "raw_data": {**raw, "contract": contracts}, "ret": []}
        return cls(proto.from_json("Transaction", whole, visible=visible))

    @property
    def contract(self) -> Any:  # noqa: ANN401 - as above
        """The one contract that a transaction holds."""
        return self.proto.raw_data.contract[0]

    @property
    def kind(self) -> str:
        """The contract's name. Raises NoContractError."""
        if not self.proto.raw_data.contract or self.contract.type not in _KIND_NAMES:
            raise NoContractError("this node does not know the transaction's contract")
        return _KIND_NAMES[self.contract.type]

    @cached_property
    def held(self) -> Any:  # noqa: ANN401 - as above
        """What the contract says. Raises NoContractError."""
        try:
            return proto.parse(self.kind, self.contract.parameter.value)
        except DecodeError as error:
            raise NoContractError(str(error)) from error

    @property
    def owner(self) -> bytes:
        """For whom it acts."""
        owner: bytes = self.held.owner_address
        return owner

    @property
    def permission(self) -> int:
        """By which of the owner's permissions."""
        number: int = self.contract.Permission_id
        return number

    @cached_property
    def signers(self) -> list[bytes]:
        """Who signed it. Raises SignatureMalformedError."""
        return [keys.signer(signature, self.id) for signature in self.proto.signature]

    @property
    def made_address(self) -> bytes:
        """Where the contract that it creates comes to stand."""
        digest: bytes = keccak_256(self.id + self.owner).digest()
        return keys.PREFIX + digest[-20:]

    @cached_property
    def merkle_leaf(self) -> bytes:
        """What the block's root covers of it: everything, with its result."""
        return hashlib.sha256(self.proto.SerializeToString()).digest()

    def concluded(self, result: str) -> Transaction:
        """Return it as it stands in a block, with what came of it."""
        copy = proto.new("Transaction")
        copy.CopyFrom(self.proto)
        done = Transaction(copy)
        done.proto.ret.add(contractRet=ENUMS["CONTRACT_RESULT"][result])
        return done

    def to_json(self, *, visible: bool = False) -> dict[str, Any]:
        shown = proto.to_json(self.proto, visible=visible)
        raw = shown.setdefault("raw_data", {})
        contracts = []
        for contract in self.proto.raw_data.contract:
            kind = _KIND_NAMES[contract.type]
            row: dict[str, Any] = {
                "parameter": {
                    "value": proto.to_json(proto.parse(kind, contract.parameter.value), visible=visible),
                    "type_url": contract.parameter.type_url,
                },
                "type": kind,
            }
            if contract.Permission_id:
                row["Permission_id"] = contract.Permission_id
            contracts.append(row)
            if kind == CREATE_CONTRACT:
                shown["contract_address"] = self.made_address.hex()
        raw["contract"] = contracts
        return {**shown, "raw_data": raw, "raw_data_hex": self.raw.hex(), "txID": self.id.hex()}


def _packed(contract: Mapping[str, Any], *, visible: bool) -> Mapping[str, str]:
    kind = contract["type"]
    held = proto.from_json(kind, contract["parameter"]["value"], visible=visible)
    return {"type_url": proto.TYPE_URL + kind, "value": held.SerializeToString().hex()}


def build(kind: str, held: Message, *, permission: int = 0, **raw: Any) -> Transaction:  # noqa: ANN401 - fields of Raw
    """Return an unsigned transaction that holds this contract."""
    message = proto.new("Transaction")
    contract = message.raw_data.contract.add(type=_KINDS[kind], Permission_id=permission)
    contract.parameter.type_url = proto.TYPE_URL + kind
    contract.parameter.value = held.SerializeToString()
    for name, value in raw.items():
        setattr(message.raw_data, name, value)
    return Transaction(message)


def signed(transaction: Transaction, *signing: bytes) -> Transaction:
    """Return the transaction signed with these keys, beside the signatures that it has."""
    message = proto.new("Transaction")
    message.CopyFrom(transaction.proto)
    message.signature.extend(keys.sign(key, transaction.id) for key in signing)
    return Transaction(message)
