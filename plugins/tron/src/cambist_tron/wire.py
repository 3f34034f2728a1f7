"""What nodes answer, as far as the gateway reads it: decoding goes straight into these.

Nodes leave out whatever is zero, empty or false, so nearly everything has a default. Fields that nobody needs are
skipped by the decoder. Nothing here can be part of a reference cycle, so the garbage collector need not look at it.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from msgspec import Struct, field

B = TypeVar("B")


class Failure(Struct, gc=False):
    """What an answer says where it is none. Nodes write ``Error``, the proxies before them ``error``."""

    told: Any = field(name="Error", default=None)
    proxy_told: Any = field(name="error", default=None)

    @property
    def text(self) -> str | None:
        """The words, None where the answer is one."""
        told = self.told if self.told is not None else self.proxy_told
        return None if told is None else str(told)


class NodeInfo(Struct, gc=False, rename="camel"):
    """The newest and the newest solid block, each as ``Num:<number>,ID:<id>``."""

    block: str
    solidity_block: str


class RawHeader(Struct, gc=False):
    """What a block's id is the hash of."""

    parent_hash: str = field(name="parentHash", default="")
    timestamp: int = 0
    tx_trie_root: str = field(name="txTrieRoot", default="")
    number: int = 0
    witness_id: int = 0
    witness_address: str = ""
    version: int = 0
    account_state_root: str = field(name="accountStateRoot", default="")


class BlockHeader(Struct, gc=False):
    """A header, of which the representative's signature is left out."""

    raw_data: RawHeader


class TronHeader(Struct, gc=False):
    """A block without its transactions."""

    id: str = field(name="blockID")
    block_header: BlockHeader

    @property
    def raw(self) -> RawHeader:
        """What it says of itself."""
        return self.block_header.raw_data


class MaybeHeader(Struct, gc=False):
    """A block without its transactions, or ``{}`` for one that the node does not have."""

    id: str = field(name="blockID", default="")
    block_header: BlockHeader | None = None

    @property
    def header(self) -> TronHeader | None:
        """The block, where there is one."""
        return None if self.block_header is None else TronHeader(self.id, self.block_header)

    @property
    def time_ms(self) -> int:
        """When it was made; 0 where there is none."""
        return 0 if self.block_header is None else self.block_header.raw_data.timestamp


class ContractValue(Struct, gc=False):
    """What a contract's parameter says, as far as it moves native coin. Other kinds of contracts have other fields.

    A transfer has ``to_address`` and ``amount``; a call has ``contract_address``, and ``call_value`` which goes along.
    """

    owner_address: str = ""
    to_address: str = ""
    amount: int = 0
    contract_address: str = ""
    call_value: int = 0


class Parameter(Struct, gc=False):
    """A contract's parameter."""

    value: ContractValue


class TxContract(Struct, gc=False):
    """The one thing that a transaction does."""

    type: str
    parameter: Parameter


class TxRaw(Struct, gc=False):
    """What was signed."""

    contract: list[TxContract] = []


class TxResult(Struct, gc=False):
    """What came of a transaction, as the block's maker wrote it into the block."""

    contract_ret: str = field(name="contractRet", default="")


class TronTx(Struct, gc=False):
    """A transaction in a block. ``raw_data_hex`` is what was signed; ``raw_data`` is what the node says of it."""

    id: str = field(name="txID")
    raw_data: TxRaw
    ret: list[TxResult] = []
    raw_data_hex: str = ""


class SignedTron(Struct, gc=False):
    """A transaction by its id, in a block or waiting, or ``{}`` for one that the node does not have."""

    raw_data_hex: str = ""
    signature: list[str] = []


class TronBlock(TronHeader, gc=False):
    """A block with its transactions."""

    transactions: list[TronTx] = []


class BlockList(Struct, Generic[B], gc=False):
    """Blocks in a row, fewer than were asked for where there are no more."""

    block: list[B] = []


class Receipt(Struct, gc=False, frozen=True):
    """What a transaction used. ``result`` is missing where no contract ran."""

    result: str = ""


class TronLog(Struct, gc=False):
    """One log. Its address has 20 bytes."""

    address: str = ""
    topics: list[str] = []
    data: str = ""


class CallValue(Struct, gc=False):
    """What an internal transaction carried: native coin where there is no ``token_id``."""

    value: int = field(name="callValue", default=0)
    token_id: str = field(name="tokenId", default="")


class InternalTx(Struct, gc=False):
    """What a contract did beside computing. ``note`` says what, in hex; only some of it moves coin."""

    sender: str = field(name="caller_address", default="")
    recipient: str = field(name="transferTo_address", default="")
    values: list[CallValue] = field(name="callValueInfo", default=[])
    note: str = ""
    rejected: bool = False


class TxInfo(Struct, gc=False):
    """What came of a transaction. ``result`` is FAILED, or missing."""

    id: str
    fee: int = 0
    block_number: int = field(name="blockNumber", default=0)
    block_time_ms: int = field(name="blockTimeStamp", default=0)
    result: str = ""
    receipt: Receipt = Receipt()
    logs: list[TronLog] = field(name="log", default=[])
    internal: list[InternalTx] = field(name="internal_transactions", default=[])
