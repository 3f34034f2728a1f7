"""TRON: the emulator of its node, looked at with tronpy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from tronpy import Tron
from tronpy.contract import Contract
from tronpy.exceptions import AddressNotFound
from tronpy.keys import PrivateKey, to_base58check_address, to_hex_address
from tronpy.providers import HTTPProvider

from cambist_tron_node import Face, Fault, TronNode, TronToken
from tests.support.tron_treasury import REPRESENTATIVES

from .base import CONFIRMATIONS, POLL_MS, Amount, Coin, Customer, Network, Onlooker, Seen
from .erc20 import ERC20

TRANSFER = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
LENT = "delegated_frozenV2_balance_for_energy"
FEE_LIMIT_SUN = 50_000_000
LIFETIME_MS = 12 * 3_600_000
"""A chain that is mined by hand is soon ahead of the clock that tronpy goes by."""


class TronOnlooker(Onlooker):
    """Reads one node with tronpy."""

    def __init__(self, url: str, reader: str) -> None:
        super().__init__()
        self.client = Tron(HTTPProvider(url), conf={"fee_limit": FEE_LIMIT_SUN})
        self._reader = reader
        self._next_block = 1  # there is no asking for the first

    def ask(self, path: str, **body: Any) -> Any:
        return self.client.provider.make_request(path, body)

    def token(self, coin: Coin, caller: str) -> Any:
        return Contract(coin.contract, abi=ERC20, owner_address=caller, client=self.client).functions

    def read_units(self, address: str, coin: Coin) -> int:
        if coin.contract is not None:
            found: int = self.token(coin, self._reader).balanceOf(address)
            return found
        try:
            balance: int = self.client.get_account(address).get("balance", 0)
        except AddressNotFound:  # nobody has sent it native coin yet
            return 0
        return balance

    async def lent(self, address: str) -> int:
        """Return how much of its stake an address lends to others."""
        account = await asyncio.to_thread(self.client.get_account, address)
        found: int = account.get("account_resource", {}).get(LENT, 0)
        return found

    def read_height(self) -> int:
        found: int = self.client.get_latest_block()["block_header"]["raw_data"]["number"]
        return found

    def read_block(self, height: int) -> Sequence[Seen]:
        mined = self.client.get_block(height).get("transactions", ())
        infos = {info["id"]: info for info in self.read_infos(height)} if mined else {}
        return [_seen(tx, infos[tx["txID"]]) for tx in mined]

    def read_infos(self, height: int) -> Sequence[Mapping[str, Any]]:
        found: list[Mapping[str, Any]] = self.ask("wallet/gettransactioninfobyblocknum", num=height)
        return found

    def read_transfers(self, token: Coin, since: int) -> Iterable[tuple[str, int]]:
        contract = to_hex_address(token.contract)[2:]
        for height in range(since, self.read_height() + 1):
            for info in self.read_infos(height):
                for log in info.get("log", ()):
                    if log["address"] == contract and log["topics"][0] == TRANSFER:
                        yield to_base58check_address("41" + log["topics"][2][24:]), int(log["data"], 16)


def _seen(tx: Mapping[str, Any], info: Mapping[str, Any]) -> Seen:
    (contract,) = tx["raw_data"]["contract"]
    said, fee = contract["parameter"]["value"], info.get("fee", 0)
    if contract["type"] != "TransferContract" or tx["ret"][0]["contractRet"] != "SUCCESS":
        return Seen(said["owner_address"], None, 0, fee)
    return Seen(said["owner_address"], said["to_address"], said["amount"], fee)


class TronCustomer(Customer):
    def __init__(self, onlooker: TronOnlooker, secret: bytes | None) -> None:
        self._onlooker = onlooker
        self._key = PrivateKey.random() if secret is None else PrivateKey(secret)
        self.address: str = self._key.public_key.to_base58check_address()

    def sign_and_send(self, to: str, coin: Coin, units: int) -> str:
        if coin.contract is None:
            built = self._onlooker.client.trx.transfer(self.address, to, units)
        else:
            built = self._onlooker.token(coin, self.address).transfer(to, units)
        tx_id: str = built.expiration(LIFETIME_MS).build().sign(self._key).broadcast().txid
        return tx_id


class TronNetwork(Network):
    chain = family = "tron"
    coin_type = 195
    station_float = 10_000
    faults = (
        Fault.TIMEOUT, Fault.HTTP_429, Fault.SHORT_INFOS, Fault.OTHER_BLOCK, Fault.HEAD_BACK, Fault.HEAD_FROZEN,
        Fault.LAGGING,
    )  # fmt: skip
    hanging = Fault.TIMEOUT
    broken = Fault.HTTP_500
    value_field = "call_value"

    def __init__(self, *, folder: Path | None = None, representatives: int = REPRESENTATIVES) -> None:
        super().__init__(folder=folder)
        self.node = TronNode(representatives=representatives)
        self._tokens: dict[str, TronToken] = {}

    async def __aenter__(self) -> Self:
        await self.node.__aenter__()
        self.url, self.accounts = self.node.url, self.node.accounts
        self._token = await self.node.deploy_token("USDX", 6)
        self.native = Coin(self, "TRX", 6)
        self.usdx = Coin(self, "USDX", 6, self._token.address)
        self.onlooker = TronOnlooker(self.url, self.accounts[0])
        await self._token.mint(self.accounts[0], 10**15)
        await self.mine()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.node.__aexit__(*error)

    def settings(self, *urls: str, **more: Any) -> Mapping[str, Mapping[str, Any]]:
        table = {
            "network": "local",
            "rpc_urls": list(urls or [self.url]),
            "confirmations": CONFIRMATIONS,
            "poll_interval_ms": POLL_MS,
            "tokens": [{"symbol": "USDX", "contract": self._token.address, "decimals": 6, "label": "Example dollar"}],
        }
        return {"plugins.tron": table | more}

    async def mine(self, blocks: int = 1) -> None:
        await self.node.mine(blocks)

    async def height(self) -> int:
        return await asyncio.to_thread(self.onlooker.read_height)

    async def reorg(self, depth: int) -> None:
        await self.node.reorg(depth)

    async def restart(self) -> None:
        await self.node.stop_listening()
        await self.node.forget_pool()
        await self.node.listen_again()

    async def send(self, coin: Coin, to: str, units: int, *, sender: str | None = None) -> str:
        if coin.contract is None:
            return await self.node.send_trx(to, units, sender=sender)
        return await self._token.transfer(to, units, sender=sender)

    async def new_token(self, symbol: str) -> Coin:
        token = self._tokens[symbol] = await self.node.deploy_token(symbol, 6)
        return Coin(self, symbol, 6, token.address)

    async def mint(self, token: Coin, to: str, amount: Amount) -> None:
        await self._tokens[token.symbol].mint(to, token.units(amount))

    async def signed(self, tx_id: str) -> Any:
        return await asyncio.to_thread(self.onlooker.ask, "wallet/gettransactionbyid", value=tx_id)

    async def send_signed(self, signed: Any) -> None:
        said = await asyncio.to_thread(self.onlooker.ask, "wallet/broadcasttransaction", **signed)
        assert said.get("result"), said

    async def logs_before(self, tx_id: str) -> int:
        def count() -> int:
            infos = self.onlooker.read_infos(self.onlooker.client.get_transaction_info(tx_id)["blockNumber"])
            place = [info["id"] for info in infos].index(tx_id)
            return sum(len(info.get("log", ())) for info in infos[:place])

        return await asyncio.to_thread(count)

    def customer(self, secret: bytes | None = None) -> TronCustomer:
        assert isinstance(self.onlooker, TronOnlooker)
        return TronCustomer(self.onlooker, secret)

    def stranger(self, name: str | None = None) -> str:
        key = PrivateKey.random() if name is None else PrivateKey(sha256(name.encode()).digest())
        address: str = key.public_key.to_base58check_address()
        return address

    def endpoint(self, *faults: Fault) -> Face:
        return self.node.face(*faults)
