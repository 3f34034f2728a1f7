"""From a block and its receipts to the watched transfers: the checks that make it one block, and the hot loop.

Pure. A block is used only when its receipts are all there, in the order of its transactions, and its own;
anything else is an outage and never an empty block.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import UNSET, UnsetType

from cambist.plugin import Block, InconsistentChainError, Transfer, Units, Watch
from cambist_chainkit.eip55 import ADDRESS, ADDRESS_BYTES, spell
from cambist_chainkit.spans import TIME_MAX

from .bloom import NO_LOGS, UNTOLD, bits_of, bloom_of, told_bloom
from .quantities import block_number, first_word, is_word, quantity
from .wire import RpcBlock, RpcFullReceipt, RpcHeader, RpcLog, RpcReceipt, RpcReceiptTotals, RpcTransaction

TRANSFER_TOPIC: Final = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

TRANSFER_TOPICS: Final = 3
"""The event, sender, recipient. ERC-721 has a fourth for its number, and somebody's own event may have one."""

FEE_LOGS: Final = {
    (
        "0x0000000000000000000000000000000000001010",
        "0x4dfe1bbbcf077ddc3e01291eea2d5c70c2b422b415d95645b9adcfd678cb1d63",
    ),
}
"""Address and event of the logs that a network itself writes for fees, so for failed transactions, too: Polygon's."""

ZERO_ADDRESS: Final = "0x" + "0" * 40

NO_TRANSACTIONS: Final = frozenset({"", "0x56e81f171bcc55a6ff8345e692c0f86e5b48e01b996cadc001622fb5e363b421"})
"""The root of a block without transactions, or none."""

DEPOSIT_TYPE: Final = "0x7e"
"""Transactions of OP chains that come from the chain below."""

_PADDING: Final = "0x" + "0" * 24
_TRANSFER_BITS: Final = bits_of(TRANSFER_TOPIC)
_INDEXES: Final = [hex(number) for number in range(1024)]


def is_synthetic(tx: RpcTransaction) -> bool:
    """Return whether nobody sent this: the transaction in which Polygon applies what was bridged in."""
    return tx.sender == tx.to == ZERO_ADDRESS and tx.value == "0x0"


def check_header(header: RpcHeader, wanted: int) -> Block:
    """Return the block's position in the chain. Raises InconsistentChainError when it stands at another height."""
    number, time = block_number(header.number), quantity(header.timestamp)
    if number != wanted:
        raise InconsistentChainError(f"block {wanted} was asked for and block {number} came")
    if not is_word(header.hash) or not is_word(header.parent_hash):
        raise InconsistentChainError(f"block {wanted} came without a hash")
    if time > TIME_MAX:
        raise InconsistentChainError(f"block {wanted} came from a time that will not be")
    return Block(height=wanted, hash=header.hash.lower(), parent_hash=header.parent_hash.lower(), time=time)


def check_emptied(block: RpcBlock) -> None:
    """Raise InconsistentChainError where a block came without its transactions, as its header's root of them tells.

    Where a node leaves out the receipts, too, nothing else shows that something was paid there. Only of networks that
    are known it is known what the root is made of.
    """
    if not block.transactions and block.transactions_root.lower() not in NO_TRANSACTIONS:
        raise InconsistentChainError(f"block {block_number(block.number)} came without its transactions")


def check_receipts(block: RpcBlock, receipts: Sequence[RpcReceipt]) -> None:
    """Raise InconsistentChainError unless these are all receipts of this block, in order and whole."""
    number = block_number(block.number)
    hashes = [tx.hash for tx in block.transactions]
    if [receipt.transaction_hash for receipt in receipts] != hashes:
        message = f"block {number} has {len(hashes)} transactions, and {len(receipts)} receipts that differ"
        raise InconsistentChainError(message)
    if len(set(hashes)) != len(hashes):
        raise InconsistentChainError(f"block {number} has a transaction twice")
    if not {receipt.block_hash for receipt in receipts} <= {block.hash}:
        raise InconsistentChainError(f"receipts of another block came with block {number}")
    _check_ends(block, receipts)
    _check_logs(number, receipts)


def _check_ends(block: RpcBlock, receipts: Sequence[RpcReceipt]) -> None:
    """Raise InconsistentChainError where a transaction that carries value has other ends than its receipt tells.

    The ends of the others are not compared: they move no native coin.
    """
    differing = [
        (tx, receipt)
        for tx, receipt in zip(block.transactions, receipts, strict=True)
        if (tx.value != "0x0" or tx.mint is not None) and (tx.to != receipt.to or tx.sender != receipt.sender)
    ]
    for tx, receipt in differing:
        if not (_same_end(tx.sender, receipt.sender) and _same_end(tx.to, receipt.to)):
            raise InconsistentChainError(f"transaction {tx.hash} and its receipt tell of different ends")


def _same_end(said: str | None, told: str | UnsetType | None) -> bool:
    """Return whether both are one address in whatever case, or none, or the receipt leaves it out."""
    return told is UNSET or said == told or (said is not None and told is not None and said.lower() == told.lower())


def _check_logs(number: int, receipts: Sequence[RpcReceipt]) -> None:
    """Raise InconsistentChainError where a log was left out, put in, copied or moved.

    Log indexes count through the block, with some nodes through the receipt. Either way a gap or a repetition
    shows that the logs are not those of the block.
    """
    if any([not receipt.logs and receipt.logs_bloom not in NO_LOGS for receipt in receipts]):  # noqa: C419
        raise InconsistentChainError(f"logs of block {number} are missing")
    logs = [log for receipt in receipts for log in receipt.logs]
    # Nodes spell numbers alike, so most are never read.
    if [log.log_index for log in logs] != _INDEXES[: len(logs)] and not _counted(receipts):
        raise InconsistentChainError(f"logs of block {number} are missing, doubled or not numbered")
    of = [receipt.transaction_hash for receipt in receipts for _ in receipt.logs]
    if [log.transaction_hash for log in logs] != of:
        raise InconsistentChainError(f"a log of block {number} is of another transaction than its receipt")


def _counted(receipts: Sequence[RpcReceipt]) -> bool:
    """Return whether the logs are numbered one after the other, all through the block or each receipt for itself."""
    numbers = [[quantity(log.log_index) for log in receipt.logs] for receipt in receipts]
    through = [number for own in numbers for number in own]
    return through == list(range(len(through))) or all(own == list(range(len(own))) for own in numbers)


def check_blooms(receipts: Sequence[RpcReceipt], contracts: Mapping[str, str]) -> None:
    """Raise InconsistentChainError where a receipt tells of a registered token's transfer, and of other logs.

    Only these receipts are compared with their logs, which takes as long as reading them. Where there is no filter,
    nothing else would show that a node spells addresses and events in another case, and so that nobody finds them.
    """
    wanted = [bits_of(contract) | _TRANSFER_BITS for contract in contracts]
    for receipt in receipts:
        text = receipt.logs_bloom
        if not receipt.logs:
            continue
        if text in UNTOLD:
            if any([one != one.lower() for log in receipt.logs for one in (log.address, *log.topics[:1])]):  # noqa: C419
                raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} spells its logs in upper case")
            continue
        try:
            told = told_bloom(text)
            whole = not any([told & bits == bits for bits in wanted]) or bloom_of(receipt.logs) == told  # noqa: C419
        except ValueError as error:
            message = f"the receipt of {receipt.transaction_hash} has a filter, an address or a topic that is none"
            raise InconsistentChainError(message) from error
        if not whole:
            raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} tells of other logs than it has")


def token_hits(
    receipts: Sequence[RpcReceipt], contracts: Mapping[str, str], watch: Watch
) -> list[tuple[int, int, RpcLog]]:
    """Return (transaction's index, log's ordinal in its receipt, log) for each watched Transfer, unchecked.

    This runs for every log of every block, so it builds nothing for what nobody watches. Raises ValueError.
    """
    hits = []
    topic = TRANSFER_TOPIC
    from_hex = bytes.fromhex
    for index, receipt in enumerate(receipts):
        for ordinal, log in enumerate(receipt.logs):
            if log.address in contracts:
                topics = log.topics
                if len(topics) == TRANSFER_TOPICS and topics[0] == topic:
                    sender, recipient = from_hex(topics[1][26:]), from_hex(topics[2][26:])
                    if len(recipient) != ADDRESS_BYTES or len(sender) != ADDRESS_BYTES:
                        raise ValueError("no address")
                    if recipient in watch or sender in watch:
                        hits.append((index, ordinal, log))
    return hits


def native_hits(transactions: Sequence[RpcTransaction], watch: Watch) -> list[tuple[int, RpcTransaction, bool]]:
    """Return (index, transaction, whether it pays a watched address) for each that moves value to or from one.

    Whatever came of it. Raises ValueError.
    """
    from_hex = bytes.fromhex
    hits = []
    for index, tx in enumerate(transactions):
        if tx.to is not None and tx.value != "0x0":
            sender, recipient = from_hex(tx.sender[2:]), from_hex(tx.to[2:])
            if len(recipient) != ADDRESS_BYTES or len(sender) != ADDRESS_BYTES:
                raise ValueError("no address")
            pays = recipient in watch
            if pays or sender in watch:
                hits.append((index, tx, pays))
    return hits


def minted(block: RpcBlock, watch: Watch) -> list[tuple[int, Transfer]]:
    """Return (transaction's index, transfer) for what deposits into an OP chain create for watched senders.

    It is theirs even where the deposit's call fails. Raises ValueError, and InconsistentChainError where something
    else than a deposit creates coin.
    """
    found = []
    for index, tx in enumerate(block.transactions):
        if tx.mint is not None:
            if tx.type != DEPOSIT_TYPE:
                raise InconsistentChainError(f"transaction {tx.hash} creates coin, and is no deposit")
            amount, creditor = quantity(tx.mint), bytes.fromhex(tx.sender[2:])
            if len(creditor) != ADDRESS_BYTES:
                raise ValueError("no address")
            if amount and creditor in watch:
                sender, recipient = ZERO_ADDRESS[2:], tx.sender[2:]
                found.append((index, transfer_in(block, tx.hash, "mint", sender, recipient, amount)))
    return found


def transfers_of(  # noqa: PLR0913  a block, and what is looked for in it
    block: RpcBlock,
    receipts: Sequence[RpcReceipt],
    contracts: Mapping[str, str],
    watch: Watch,
    internal: Sequence[tuple[int, Transfer]] = (),
    *,
    logs_known: bool = True,
) -> list[Transfer]:
    """Return the watched transfers of a checked block in the order of the chain: by transaction, native before logs.

    ``internal`` holds the native transfers that traces showed, with the index of their transaction. ``logs_known`` is
    the network's.
    """
    try:
        found = minted(block, watch)
        found += [
            (index, transfer)
            for index, tx, pays in native_hits(block.transactions, watch)
            if (transfer := _native_transfer(block, receipts[index], tx, checked=logs_known and pays)) is not None
        ]
        found += internal
        found += [
            (index, transfer)
            for index, ordinal, log in token_hits(receipts, contracts, watch)
            if (transfer := _token_transfer(block, receipts[index], ordinal, log, contracts, logs_known=logs_known))
            is not None
        ]
    except ValueError as error:
        raise InconsistentChainError(f"block {block.number} holds an address that is none") from error
    found.sort(key=lambda hit: hit[0])
    return [transfer for _, transfer in found]


def succeeded(receipt: RpcReceipt | RpcReceiptTotals) -> bool:
    """Return whether the transaction took effect. Raises InconsistentChainError where the receipt does not tell."""
    if receipt.status is None:
        raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} has no status")
    status = quantity(receipt.status)
    if status not in {0, 1}:
        raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} has the status {status}")
    return status == 1


def took_effect(receipt: RpcReceipt | RpcFullReceipt, *, logs_known: bool = True) -> bool:
    """Return whether the transaction took effect. Raises InconsistentChainError where it failed and has logs.

    Those for fees do not count, and none does where nobody here knows the network's logs: anybody can have a
    transaction fail, and whatever that leaves must not stop the chain. It is asked of who pays somebody watched, and
    not of all.
    """
    effective = succeeded(receipt)
    if logs_known and not effective and any(_spelled_low(log) not in FEE_LOGS for log in receipt.logs):
        raise InconsistentChainError(f"the receipt of {receipt.transaction_hash} says failed, and has logs")
    return effective


def _spelled_low(log: RpcLog) -> tuple[str, ...]:
    return (log.address.lower(), *(topic.lower() for topic in log.topics[:1]))


def _native_transfer(block: RpcBlock, receipt: RpcReceipt, tx: RpcTransaction, *, checked: bool) -> Transfer | None:
    amount = quantity(tx.value)
    # What an address sends to itself changes nothing it holds.
    if amount == 0 or tx.to is None or tx.to.lower() == tx.sender.lower():
        return None
    if not took_effect(receipt, logs_known=checked):
        return None
    return transfer_in(block, tx.hash, "native", tx.sender[2:], tx.to[2:], amount)


def _token_transfer(  # noqa: PLR0913  a log, and where it stands
    block: RpcBlock,
    receipt: RpcReceipt,
    ordinal: int,
    log: RpcLog,
    contracts: Mapping[str, str],
    *,
    logs_known: bool,
) -> Transfer | None:
    if log.removed:
        raise InconsistentChainError(f"a log of block {block.number} is marked as removed by a reorg")
    _, sender, recipient = log.topics
    padded = sender.startswith(_PADDING) and recipient.startswith(_PADDING)
    if not is_word(sender) or not is_word(recipient):
        raise ValueError("no topic")
    amount = first_word(log.data)
    if not amount or not padded or sender == recipient or not took_effect(receipt, logs_known=logs_known):
        return None
    return transfer_in(
        block, receipt.transaction_hash, f"log:{ordinal}", sender[26:], recipient[26:], amount, contracts[log.address]
    )


def transfer_in(  # noqa: PLR0913, PLR0917 - the fields of a transfer
    block: RpcBlock, tx_id: str, position: str, sender: str, recipient: str, amount: int, contract: str | None = None
) -> Transfer:
    """Return what the block holds; addresses are given as 40 hex digits. Raises ValueError where they are none."""
    if ADDRESS.fullmatch(f"0x{sender}") is None or not is_word(tx_id):
        raise ValueError("no address, or no hash")
    return Transfer(
        tx_id=tx_id.lower(),
        position=position,
        height=block_number(block.number),
        block_hash=block.hash.lower(),
        sender=spell(sender.lower()),
        recipient=spell(recipient.lower()),
        contract=contract,
        amount=Units(amount),
    )
