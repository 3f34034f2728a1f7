"""Ethereum, or another chain of its kind: anvil, looked at with web3.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from eth_account import Account as Keys
from eth_account.signers.local import LocalAccount
from web3 import Web3
from web3.types import TxParams

from cambist_evm.testing import Anvil, Contract, Fault, FaultyProxy
from cambist_evm.testing.anvil import LONG_CHAIN

from .base import CONFIRMATIONS, POLL_MS, Amount, Coin, Customer, Network, Onlooker, Seen
from .erc20 import ERC20

CHAIN_IDS = {"ethereum": 1, "base": 8453}
TRANSFER = Web3.keccak(text="Transfer(address,address,uint256)").to_0x_hex()


class AnvilOnlooker(Onlooker):
    """Reads one node with web3.py."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.client = Web3(Web3.HTTPProvider(url))
        # Before each call of a contract it asks for the chain's number. Most calls ask for a balance, again and again.
        self.client.middleware_onion.remove("validation")

    def token(self, coin: Coin) -> Any:
        assert coin.contract is not None
        return self.client.eth.contract(address=Web3.to_checksum_address(coin.contract), abi=ERC20)

    def read_units(self, address: str, coin: Coin) -> int:
        owner = Web3.to_checksum_address(address)
        if coin.contract is None:
            return self.client.eth.get_balance(owner)
        found: int = self.token(coin).functions.balanceOf(owner).call()
        return found

    def read_height(self) -> int:
        return self.client.eth.block_number

    def read_block(self, height: int) -> Sequence[Seen]:
        found: list[Seen] = []
        if not self.client.eth.get_block_transaction_count(height):
            return found  # as most are, of a chain that is mined all the time; a whole block takes web3.py far longer
        for tx in self.client.eth.get_block(height, full_transactions=True)["transactions"]:
            assert not isinstance(tx, bytes)
            receipt = self.client.eth.get_transaction_receipt(tx["hash"])
            fee = receipt["gasUsed"] * receipt["effectiveGasPrice"]
            found.append(Seen(tx["from"], tx.get("to"), tx["value"] * receipt["status"], fee))
        return found

    def read_transfers(self, token: Coin, since: int) -> Iterable[tuple[str, int]]:
        address = self.token(token).address
        for log in self.client.eth.get_logs({"fromBlock": since, "address": address, "topics": [TRANSFER]}):
            yield Web3.to_checksum_address(log["topics"][2][-20:]), int.from_bytes(log["data"], "big")


class AnvilCustomer(Customer):
    def __init__(self, onlooker: AnvilOnlooker, secret: bytes | None) -> None:
        self._onlooker = onlooker
        self._key: LocalAccount = Keys.create() if secret is None else Keys.from_key(secret)
        self.address: str = self._key.address

    def sign_and_send(self, to: str, coin: Coin, units: int) -> str:
        eth, to_address = self._onlooker.client.eth, Web3.to_checksum_address(to)
        tx: TxParams = {
            "chainId": eth.chain_id,
            "nonce": eth.get_transaction_count(Web3.to_checksum_address(self.address), "pending"),
            "maxFeePerGas": Web3.to_wei(20, "gwei"),
            "maxPriorityFeePerGas": Web3.to_wei(1, "gwei"),
        }
        if coin.contract is None:
            tx |= {"to": to_address, "value": Web3.to_wei(units, "wei"), "gas": 21_000}
        else:
            token = self._onlooker.token(coin)
            data = token.encode_abi("transfer", [to_address, units])
            tx |= {"to": token.address, "value": Web3.to_wei(0, "wei"), "data": data, "gas": 100_000}
        return eth.send_raw_transaction(self._key.sign_transaction(tx).raw_transaction).to_0x_hex()


class AnvilNetwork(Network):
    family = "evm"
    coin_type = 60
    station_float = 5
    faults = (
        Fault.TIMEOUT, Fault.HTTP_429, Fault.SHORT_RECEIPTS, Fault.HEAD_BACK, Fault.HEAD_FROZEN, Fault.WRONG_CHAIN_ID,
        Fault.OTHER_HASH,
    )  # fmt: skip
    hanging = Fault.TIMEOUT
    broken = Fault.HTTP_500
    value_field = "value"

    def __init__(self, chain: str = "ethereum", *, folder: Path | None = None) -> None:
        super().__init__(folder=folder)
        self.chain = chain
        state = None if folder is None else folder / "state.json"
        self.node = Anvil(chain_id=CHAIN_IDS[chain], automine=False, state=state, arguments=LONG_CHAIN)
        self._tokens: dict[str, Contract] = {}

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        self.url, self.accounts = self.node.url, self.node.accounts
        self._token = await self.node.deploy("TestToken", "USDX", 6)
        self.native = Coin(self, "ETH", 18)
        self.usdx = Coin(self, "USDX", 6, self._token.address)
        self.onlooker = AnvilOnlooker(self.url)
        await self._token.send("mint", self.accounts[0], 10**15)
        await self.mine()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.node.__aexit__(*error)

    def settings(self, *urls: str, **more: Any) -> Mapping[str, Mapping[str, Any]]:
        table = {
            "rpc_urls": list(urls or [self.url]),
            "confirmations": CONFIRMATIONS,
            "poll_interval_ms": POLL_MS,
            "l1_fee": False,  # anvil charges for gas alone, whichever chain it plays
            # A restarted anvil cannot trace its old blocks, and the watcher passes over none that it cannot trace.
            **({} if self.folder is None else {"trace": "off"}),
            "tokens": [{"symbol": "USDX", "contract": self._token.address, "decimals": 6, "label": "Example dollar"}],
        }
        return {f"plugins.evm.chains.{self.chain}": table | more}

    async def mine(self, blocks: int = 1) -> None:
        await self.node.mine(blocks)

    async def height(self) -> int:
        return await self.node.height()

    async def reorg(self, depth: int) -> None:
        await self.node.reorg(depth)

    async def restart(self) -> None:
        await self.node.restart()

    async def send(self, coin: Coin, to: str, units: int, *, sender: str | None = None) -> str:
        if coin.contract is None:
            return await self.node.send_native(to, units, sender=sender)
        return await self._token.send("transfer", to, units, sender=sender)

    async def new_token(self, symbol: str) -> Coin:
        token = self._tokens[symbol] = await self.node.deploy("TestToken", symbol, 6)
        return Coin(self, symbol, 6, token.address)

    async def mint(self, token: Coin, to: str, amount: Amount) -> None:
        await self._tokens[token.symbol].send("mint", to, token.units(amount))

    async def signed(self, tx_id: str) -> str:
        return await self.node.raw(tx_id)

    async def send_signed(self, signed: str) -> None:
        await self.node.send_raw(signed)

    async def logs_before(self, tx_id: str) -> int:
        receipt = await self.node.receipt(tx_id)
        return int(receipt["logs"][0]["logIndex"], 16)

    def customer(self, secret: bytes | None = None) -> AnvilCustomer:
        assert isinstance(self.onlooker, AnvilOnlooker)
        return AnvilCustomer(self.onlooker, secret)

    def stranger(self, name: str | None = None) -> str:
        key = Keys.create() if name is None else Keys.from_key(Web3.keccak(text=name))
        address: str = key.address
        return address

    def endpoint(self, *faults: Fault) -> FaultyProxy:
        return FaultyProxy(self.url, *faults)
