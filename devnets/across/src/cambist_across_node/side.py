"""Across on one chain: its real contracts on a local node, and everything that is said to them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from eth_abi.abi import encode
from msgspec import Struct

from cambist.testing.anvil import AnvilClient, RpcRefusedError
from cambist_chainkit.eip55 import keccak, spell

from .artifacts import across, pool, token, wrapped
from .deposits import (
    DEPOSITED,
    FILLED,
    READ_MAX,
    REFUND_LEAF,
    SLOW_LEAF,
    Deposit,
    FillStatus,
    Relay,
    fill_kind,
    number_word,
    read_deposit,
    word,
)

QUOTE_AGE_S_MAX: Final = 3600
FILL_S_MAX: Final = 21_600
"""What the pools take, as on the main networks: quotes that are not older, and deadlines that are not farther."""

ZERO: Final = "0x" + "0" * 40
WETH: Final = "WETH"
WETH_DECIMALS: Final = 18
ETHER: Final = 10**18
RELAYER_TOKENS: Final = 10**9
RELAYER_ETHER: Final = 10**6
MINED_TIMEOUT_S: Final = 10.0
_UINT256_MAX: Final = 2**256 - 1


class Token(Struct, frozen=True, kw_only=True):
    """A token of one chain. The same symbol is bridged from chain to chain."""

    symbol: str
    address: str
    decimals: int


class Side:
    """One of the two chains. ``owner`` may do what Across's own contracts may; ``relayer`` fills.

    Both are accounts of nobody's, for whom the node sends: what others do with the node's accounts is not disturbed.
    """

    def __init__(self, node: AnvilClient, name: str) -> None:
        self.node = node
        self.name = name
        self.chain_id = 0
        self.owner = self.relayer = self.pool = ZERO
        self.tokens: dict[str, Token] = {}
        self._automine = True
        self._first = 0

    @property
    def wrapped(self) -> str:
        """The token that the pool wraps native coin into."""
        return self.tokens[WETH].address

    def token_at(self, address: str) -> Token | None:
        return next((one for one in self.tokens.values() if one.address.lower() == address.lower()), None)

    # --- Set-up ---

    async def deploy(self, tokens: Mapping[str, int | str]) -> None:
        """Deploy the SpokePool, and tokens with these decimals. An address stands for a token that is there."""
        self.chain_id = int(await self.node.call("eth_chainId"), 16)
        self._first = int(await self.node.call("eth_blockNumber"), 16)
        self._automine = await self.node.call("anvil_getAutomine")
        self.owner, self.relayer = (_account(f"{name} of Across on {self.chain_id}") for name in ("owner", "relayer"))
        for who in (self.owner, self.relayer):
            await self.node.call("anvil_setBalance", [who, hex(2 * RELAYER_ETHER * ETHER)])
        weth = await self.create(wrapped().creation_code())
        self.tokens[WETH] = Token(symbol=WETH, address=weth, decimals=WETH_DECIMALS)
        code = await self.create(pool().creation_code(weth, QUOTE_AGE_S_MAX, FILL_S_MAX, ZERO))
        start = pool().call_data("initialize", 0, self.owner)
        self.pool = await self.create(across("ERC1967Proxy").creation_code(code, start))
        await self.send(self.relayer, weth, wrapped().call_data("deposit"), RELAYER_ETHER * ETHER)
        await self.send(self.relayer, weth, wrapped().call_data("approve", self.pool, _UINT256_MAX))
        for symbol, known in tokens.items():
            address = known if isinstance(known, str) else await self.create(token().creation_code(symbol, known))
            await self._add_token(symbol, address)

    async def _add_token(self, symbol: str, address: str) -> None:
        decimals = token().answer("decimals", await self.read(address, token().call_data("decimals")))
        self.tokens[symbol] = Token(symbol=symbol, address=spell(address[2:].lower()), decimals=decimals)
        await self.mint(symbol, self.relayer, RELAYER_TOKENS * 10**decimals)
        await self.send(self.relayer, address, token().call_data("approve", self.pool, _UINT256_MAX))

    async def mint(self, symbol: str, who: str, units: int) -> None:
        """Give somebody tokens, or wrapped coin."""
        one = self.tokens[symbol]
        if symbol == WETH:
            await self.send(self.owner, one.address, wrapped().call_data("deposit"), units)
            await self.send(self.owner, one.address, wrapped().call_data("transfer", who, units))
        else:
            await self.send(self.owner, one.address, token().call_data("mint", who, units))

    async def create(self, code: bytes) -> str:
        """Return the address of a new contract."""
        receipt = await self.send(self.owner, None, code)
        return spell(receipt["contractAddress"][2:].lower())

    # --- Transactions ---

    async def submit(self, sender: str, to: str | None, data: bytes, value: int = 0) -> str:
        """Send a transaction for anybody, and return its id. Raises RpcRefusedError for what would be reverted now."""
        await self.node.call("anvil_impersonateAccount", [sender])
        transaction = {"from": sender, "data": "0x" + data.hex(), "value": hex(value)}
        transaction |= {} if to is None else {"to": to}
        await self.node.call("eth_estimateGas", [transaction, "pending"])
        tx_id: str = await self.node.call("eth_sendTransaction", [transaction])
        return tx_id

    async def send(self, sender: str, to: str | None, data: bytes, value: int = 0) -> dict[str, Any]:
        """Return the receipt of a transaction that succeeds. Mines it where the node does not do so at once."""
        tx_id = await self.submit(sender, to, data, value)
        if not self._automine:
            await self.node.call("evm_mine")
        async with asyncio.timeout(MINED_TIMEOUT_S):
            while (receipt := await self.node.call("eth_getTransactionReceipt", [tx_id])) is None:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        if receipt["status"] != "0x1":
            raise RpcRefusedError(f"{tx_id} was reverted")
        found: dict[str, Any] = receipt
        return found

    async def say(self, function: str, *arguments: Any) -> dict[str, Any]:  # noqa: ANN401 - ABI values
        """Have the owner call a function of the SpokePool."""
        return await self.send(self.owner, self.pool, pool().call_data(function, *arguments))

    # --- What the chain knows ---

    async def read(self, to: str, data: bytes) -> bytes:
        answer: str = await self.node.call("eth_call", [{"to": to, "data": "0x" + data.hex()}, "latest"])
        return bytes.fromhex(answer[2:])

    async def balance(self, who: str, symbol: str | None = None) -> int:
        """Return what somebody has of a token, or of coin."""
        if symbol is None:
            return int(await self.node.call("eth_getBalance", [who, "latest"]), 16)
        data = token().call_data("balanceOf", who)
        return int.from_bytes(await self.read(self.tokens[symbol].address, data), "big")

    async def time(self) -> int:
        """Return the time that a block would have now, in seconds since 1970 UTC."""
        block = await self.node.call("eth_getBlockByNumber", ["pending", False])
        return int(block["timestamp"], 16)

    async def deposits(self) -> Sequence[Deposit]:
        """Return all deposits, whatever became of them. A reorganization changes them."""
        logs = await self._logs(pool().topic(DEPOSITED))
        return [read_deposit(log, self.chain_id) for log in logs]

    async def fill_statuses(self, deposits: Sequence[Deposit]) -> Sequence[FillStatus]:
        """Return what became here of deposits that were made on the other chain."""
        calls = [{"to": self.pool, "data": _status_call(one.hash)} for one in deposits]
        answers = await self.node.batch([("eth_call", [call, "latest"]) for call in calls])
        return [FillStatus(int(answer, 16)) for answer in answers]

    async def find_fill(self, deposit: Deposit) -> tuple[str, int] | None:
        """Return the transaction that filled a deposit, and the kind of the fill. What only looks like it is none."""
        topics = (pool().topic(FILLED), number_word(deposit.relay.origin), number_word(deposit.relay.number))
        for log in await self._logs(*topics):
            kind = fill_kind(log, deposit)
            if kind is not None:
                return log["transactionHash"], kind
        return None

    async def knows(self, tx_id: str) -> bool:
        """Whether the node still has a transaction, mined or waiting."""
        return await self.node.call("eth_getTransactionByHash", [tx_id]) is not None

    async def _logs(self, *topics: bytes) -> Sequence[Mapping[str, Any]]:
        asked = {
            "address": self.pool,
            "topics": ["0x" + topic.hex() for topic in topics],
            "fromBlock": hex(self._first),
            "toBlock": "latest",
        }
        found: Sequence[Mapping[str, Any]] = await self.node.call("eth_getLogs", [asked])
        return found

    # --- Fills and refunds ---

    def filling(self, relay: Relay) -> bytes:
        """Return the call by which the relayer fills a deposit, and asks for its repayment on this chain."""
        return pool().call_data("fillRelay", relay.values, self.chain_id, word(self.relayer))

    async def slow_filling(self, relay: Relay, units_out: int) -> bytes:
        """Return the call that fills a deposit from the pool's own money, as the only leaf of a new bundle."""
        leaf = (relay.values, self.chain_id, units_out)
        bundle = await self._bundle(bytes(32), keccak(encode([SLOW_LEAF], [leaf])))
        return pool().call_data("executeSlowRelayLeaf", leaf, bundle, [])

    async def refunding(self, of: str, who: Sequence[str], units: Sequence[int]) -> bytes:
        """Return the call that pays a token to these, as the only leaf of a new bundle."""
        leaf = (0, self.chain_id, list(units), 0, of, list(who))
        bundle = await self._bundle(keccak(encode([REFUND_LEAF], [leaf])), bytes(32))
        return pool().call_data("executeRelayerRefundLeaf", bundle, leaf, [])

    async def pay(self, of: str, who: Sequence[str], units: Sequence[int]) -> dict[str, Any]:
        """Pay a token from the pool to these, whatever for, in one leaf of a bundle, and return the receipt."""
        return await self.send(self.owner, self.pool, await self.refunding(of, who, units))

    async def _bundle(self, refunds: bytes, slow_fills: bytes) -> int:
        """Have Across tell the SpokePool of a new bundle, and return its number."""
        receipt = await self.say("relayRootBundle", refunds, slow_fills)
        topic = "0x" + pool().topic("RelayedRootBundle").hex()
        return next(int(log["topics"][1], 16) for log in receipt["logs"] if log["topics"][0] == topic)


def _account(name: str) -> str:
    return spell(keccak(name.encode())[12:].hex())


@lru_cache(maxsize=READ_MAX)
def _status_call(deposit: bytes) -> str:
    return "0x" + pool().call_data("fillStatuses", deposit).hex()
