"""Questions of which one endpoint answers many at once: balances, and what became of transactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from cambist.plugin import Block, InconsistentChainError, Token, TxStatus, Units
from cambist_chainkit.contracts import allowance_data

from .decode import check_header, succeeded
from .endpoint import Endpoint
from .quantities import block_number, first_word, quantity
from .wire import RpcHeader, RpcReceiptTotals, RpcSeen

_BALANCE_OF: Final = "0x70a08231" + "0" * 24
_FEE_MAX: Final = 2**256 - 1


def balance_call(address: str, token: Token, where: str) -> tuple[str, Sequence[Any]]:
    if token.contract is None:
        return ("eth_getBalance", (address, where))
    return ("eth_call", ({"to": token.contract, "data": _BALANCE_OF + address[2:].lower()}, where))


def read_balance(endpoint: Endpoint, token: Token, answer: str | None) -> Units:
    """Return the balance that an answer tells. Raises InconsistentChainError."""
    if token.contract is None:
        return Units(quantity(answer or ""))
    balance = first_word(answer or "0x")
    if balance is None:
        raise InconsistentChainError(f"{endpoint.name} finds no token contract at {token.contract}")
    return Units(balance)


async def balances_at(endpoint: Endpoint, wanted: Sequence[tuple[str, Token]], at: int | None) -> list[Units]:
    """Return balances, in the order asked for. An old height needs an endpoint that keeps old states."""
    where = "latest" if at is None else hex(at)
    answers = await endpoint.all([balance_call(address, token, where) for address, token in wanted], str)
    return [read_balance(endpoint, token, answer) for (_, token), answer in zip(wanted, answers, strict=True)]


async def allowance_at(endpoint: Endpoint, owner: str, spender: str, token: Token) -> Units:
    """Return how much of the token the spender may still take from the owner. Native coin nobody may."""
    if token.contract is None:
        return Units(0)
    data = allowance_data(bytes.fromhex(owner[2:]), bytes.fromhex(spender[2:]))
    asked = {"to": token.contract, "data": "0x" + data.hex()}
    return read_balance(endpoint, token, await endpoint.rpc.call("eth_call", (asked, "latest"), str))


async def mined_count(endpoint: Endpoint, sender: str) -> int:
    """Return how many of the sender's transactions are mined. Raises ChainError.

    The chain is asked for in the same request: an address has other counts on other chains, and what a provider told of
    one of those by mistake would leave a gap of nonces, each of which takes a transaction to fill.
    """
    calls = [("eth_chainId", ()), ("eth_getTransactionCount", (sender, "latest"))]
    chain_id, count = await endpoint.all(calls, str)
    endpoint.check_chain(quantity(chain_id or ""))
    return block_number(count or "")


async def statuses(endpoint: Endpoint, tx_ids: Sequence[str]) -> dict[str, TxStatus]:
    receipts = await endpoint.all([("eth_getTransactionReceipt", (tx_id,)) for tx_id in tx_ids], RpcReceiptTotals)
    mined = {tx_id: receipt for tx_id, receipt in zip(tx_ids, receipts, strict=True) if receipt is not None}
    unmined = [tx_id for tx_id in tx_ids if tx_id not in mined]
    seen = await endpoint.all([("eth_getTransactionByHash", (tx_id,)) for tx_id in unmined], RpcSeen)
    found = {
        tx_id: TxStatus(state="unknown" if one is None else "pending") for tx_id, one in zip(unmined, seen, strict=True)
    }
    blocks = await blocks_of(endpoint, sorted({receipt.block_hash for receipt in mined.values()}))
    for tx_id, receipt in mined.items():
        block = block_of(endpoint, tx_id, receipt, blocks)
        found[tx_id] = TxStatus(state="succeeded" if succeeded(receipt) else "reverted", block=block, fee=_fee(receipt))
    return found


def block_of(endpoint: Endpoint, tx_id: str, receipt: RpcReceiptTotals, blocks: Mapping[str, Block]) -> Block:
    """Return the block that a receipt stands in. Raises InconsistentChainError where it is another's, or in none."""
    block = blocks.get(receipt.block_hash)
    told = block_number(receipt.block_number), receipt.transaction_hash.lower()
    if block is None or told != (block.height, tx_id.lower()):
        raise InconsistentChainError(f"{endpoint.name} has a receipt of {tx_id} that fits no block")
    return block


async def blocks_of(endpoint: Endpoint, hashes: Sequence[str]) -> dict[str, Block]:
    """Return the blocks with these hashes, as far as the endpoint has them."""
    headers = await endpoint.known([("eth_getBlockByHash", (hash_, False)) for hash_ in hashes], RpcHeader)
    return {
        hash_: check_header(header, block_number(header.number))
        for hash_, header in zip(hashes, headers, strict=True)
        if header is not None and header.hash == hash_
    }


def _fee(receipt: RpcReceiptTotals) -> Units:
    fee = quantity(receipt.gas_used) * quantity(receipt.effective_gas_price)
    fee += 0 if receipt.l1_fee is None else quantity(receipt.l1_fee)
    if fee > _FEE_MAX:
        raise InconsistentChainError(f"transaction {receipt.transaction_hash} came with a fee that cannot be")
    return Units(fee)
