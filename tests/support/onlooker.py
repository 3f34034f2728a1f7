"""Somebody else's client at a node: what addresses hold, what gas cost, and customers who sign for themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from eth_account import Account as Keys
from eth_account.signers.local import LocalAccount
from web3 import Web3
from web3.types import TxParams

ERC20 = [
    {
        "name": "balanceOf",
        "type": "function",
        "stateMutability": "view",
        "inputs": [{"name": "owner", "type": "address"}],
        "outputs": [{"name": "", "type": "uint256"}],
    },
    {
        "name": "transfer",
        "type": "function",
        "stateMutability": "nonpayable",
        "inputs": [{"name": "to", "type": "address"}, {"name": "units", "type": "uint256"}],
        "outputs": [{"name": "", "type": "bool"}],
    },
]
DECIMALS = {"ETH": 18, "USDX": 6}
TRANSFER_GAS = {"ETH": 21_000, "USDX": 100_000}


def stranger() -> str:
    """Return an address that nobody has used before."""
    address: str = Keys.create().address
    return address


class Onlooker:
    """Reads one node with web3.py and shares nothing with the gateway. Amounts are whole coins, ETH or USDX."""

    def __init__(self, url: str, token_address: str) -> None:
        self.client = Web3(Web3.HTTPProvider(url))
        self._token = self.client.eth.contract(address=Web3.to_checksum_address(token_address), abi=ERC20)
        self._transactions: list[Any] = []
        self._next_block = 0

    def units(self, address: str, coin: str) -> int:
        """Return what an address holds, in smallest units."""
        owner = Web3.to_checksum_address(address)
        if coin == "ETH":
            return self.client.eth.get_balance(owner)
        found: int = self._token.functions.balanceOf(owner).call()
        return found

    def holds(self, address: str, coin: str, amount: int) -> bool:
        """Whether an address holds just so many whole coins."""
        return self.units(address, coin) == amount * 10 ** DECIMALS[coin]

    def gas(self, address: str, station: str) -> int:
        """Return what the gas station gave an address, less all fees it paid; the station's own gas is below zero."""
        total = 0
        for tx in self._all():
            if tx["from"] == address:
                total -= tx["fee"]
            if tx["from"] == station and tx["value"]:
                total += tx["value"] * ((tx["to"] == address) - (station == address))
        return total

    def fees(self, addresses: Iterable[str]) -> int:
        """Return all that the transactions of these senders have cost."""
        senders = set(addresses)
        return sum(tx["fee"] for tx in self._all() if tx["from"] in senders)

    def _all(self) -> Iterator[dict[str, Any]]:
        """Yield every mined transaction; blocks that were seen are not read again, so the chain must not reorganize."""
        newest = self.client.eth.block_number
        for height in range(self._next_block, newest + 1):
            for tx in self.client.eth.get_block(height, full_transactions=True)["transactions"]:
                assert not isinstance(tx, bytes)
                receipt = self.client.eth.get_transaction_receipt(tx["hash"])
                fee = receipt["gasUsed"] * receipt["effectiveGasPrice"]
                self._transactions.append(
                    {"from": tx["from"], "to": tx.get("to"), "value": tx["value"] * receipt["status"], "fee": fee}
                )
        self._next_block = newest + 1
        yield from self._transactions


class Customer:
    """Somebody with a wallet of his own, who signs for himself."""

    def __init__(self, onlooker: Onlooker) -> None:
        self._client, self._token = onlooker.client, onlooker._token
        self._key: LocalAccount = Keys.create()
        self.address: str = self._key.address

    def pay(self, to: str, coin: str, amount: int) -> str:
        """Send whole coins, and return the transaction's id; a block has to be mined for it."""
        units, target = amount * 10 ** DECIMALS[coin], Web3.to_checksum_address(to)
        tx: TxParams = {
            "chainId": self._client.eth.chain_id,
            "nonce": self._client.eth.get_transaction_count(Web3.to_checksum_address(self.address), "pending"),
            "gas": TRANSFER_GAS[coin],
            "maxFeePerGas": Web3.to_wei(20, "gwei"),
            "maxPriorityFeePerGas": Web3.to_wei(1, "gwei"),
        }
        if coin == "ETH":
            tx |= {"to": target, "value": Web3.to_wei(amount, "ether")}
        else:
            data = self._token.encode_abi("transfer", [target, units])
            tx |= {"to": self._token.address, "value": Web3.to_wei(0, "wei"), "data": data}
        return self._client.eth.send_raw_transaction(self._key.sign_transaction(tx).raw_transaction).to_0x_hex()
