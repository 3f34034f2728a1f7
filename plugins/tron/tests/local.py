"""A local node, two tokens on it, and a chain connected to it: what the tests of sending begin with."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

from coincurve import PrivateKey

from cambist.plugin import Action, Chain, Dated, Fee, Intent, LendingChain, Plan, SignedTx, Step, TxStatus, Units
from cambist.testing.anvil import AnvilClient
from cambist_tron.family import TronFamily
from cambist_tron_node import TronNode, TronToken
from cambist_tron_node.blocks import MAINNET
from cambist_tron_node.evm import AnvilMachine

FAMILY = TronFamily()
TRX = 10**6
PLENTY = 10**12

Connect = Callable[..., AbstractAsyncContextManager[Chain]]


class Net:
    """The node with USDT, which behaves and costs as on the main network, and USDX, an ordinary token.

    ``rich`` has plenty of everything, ``customer`` and ``sponsor`` of coin; none of them sent anything yet.
    """

    def __init__(self, node: TronNode, usdt: TronToken, usdx: TronToken, connect: Connect) -> None:
        self.node = node
        self.usdt = usdt
        self.usdx = usdx
        self.chain: LendingChain
        self._connect = connect
        self._names = 0
        _, self.rich, self.customer, self.sponsor = node.accounts[:4]

    @asynccontextmanager
    async def connected(self, *urls: str, **settings: Any) -> AsyncIterator[LendingChain]:
        """Connect another chain to the node."""
        tokens = [
            {"symbol": symbol, "contract": token.address, "decimals": 6}
            for symbol, token in (("USDT", self.usdt), ("USDX", self.usdx))
        ]
        async with self._connect(*(urls or (self.node.url,)), tokens=tokens, **settings) as chain:
            assert isinstance(chain, LendingChain)
            yield chain

    def key(self, address: str) -> PrivateKey:
        """Return the key that owns the address."""
        return PrivateKey(self.node.keys[address])

    def nobody(self) -> str:
        """Return an address that is not activated, whose key is known."""
        self._names += 1
        return self.node.new_account(f"nobody {self._names}")

    async def holder(self, units: int, *, sun: int = 0, token: TronToken | None = None) -> str:
        """Return an address that holds a token, and so much coin; without any, it is not activated."""
        address = self.nobody()
        await (token or self.usdt).mint(address, Units(units))
        if sun:
            await self.node.send_trx(address, sun)
        await self.node.mine()
        return address

    def intent(
        self, source: str, to_address: str, amount: int, symbol: str = "TRX", action: Action = "transfer"
    ) -> Intent:
        token = self.chain.info.token(symbol)
        assert token is not None
        return Intent(source=source, to_address=to_address, token=token, amount=Units(amount), action=action)

    async def planned(self, *intents: Intent, sponsor: str | None = None) -> list[Step]:
        """Return the steps of plans, none of which is refused."""
        return [step_of(plan) for plan in await self.chain.plan(intents, sponsor=sponsor)]

    async def signed(self, *steps: Step) -> tuple[list[SignedTx], list[Dated]]:
        """Return steps as what is broadcast, and as what can expire."""
        prepared = await self.chain.prepare([(step, None) for step in steps])
        txs = []
        for one in prepared:
            signature = self.key(one.sender).sign_recoverable(FAMILY.digest(one.payload), hasher=None)
            txs.append(FAMILY.seal(one, signature))
        dated = zip(txs, prepared, strict=True)
        return txs, [Dated(tx_id=tx.tx_id, valid_until=one.valid_until or 0) for tx, one in dated]

    async def states(self, txs: Sequence[SignedTx]) -> list[str]:
        return [status.state for status in await self.chain.transactions([tx.tx_id for tx in txs])]

    async def send(self, *steps: Step) -> list[TxStatus]:
        """Send steps, which must be accepted, mine them, and return what became of them."""
        txs, _ = await self.signed(*steps)
        assert [said.state for said in await self.chain.broadcast(txs)] == ["accepted"] * len(txs)
        await self.node.mine()
        return list(await self.chain.transactions([tx.tx_id for tx in txs]))

    async def act(self, action: Action, to_address: str, amount: int) -> TxStatus:
        """Do something with the sponsor's stake, which must succeed."""
        (step,) = await self.planned(self.intent(self.sponsor, to_address, amount, action=action), sponsor=self.sponsor)
        (status,) = await self.send(step)
        assert status.state == "succeeded"
        return status

    async def outlive(self, dated: Dated) -> None:
        """Let blocks pass until every block that may hold the transaction is solid."""
        head = self.node.chain.blocks.head.timestamp_ms // 1000
        await self.node.mine(max(0, dated.valid_until - head) // 3 + 25)


def step_of(plan: Plan) -> Step:
    assert plan.refused is None, plan.refused
    assert plan.step is not None
    return plan.step


def fee_of(plan: Plan) -> Fee:
    return step_of(plan).fee


@asynccontextmanager
async def open_net(connect: Connect, anvil: AnvilClient) -> AsyncIterator[Net]:
    """Start the node, whose contracts run on this anvil, deploy the tokens, and connect."""
    async with TronNode(machine=AnvilMachine(MAINNET, anvil=anvil)) as node:
        usdt = await node.deploy_token("USDT", 6, usdt_like=True)
        usdx = await node.deploy_token("USDX", 6)
        net = Net(node, usdt, usdx, connect)
        for token in (usdt, usdx):
            await token.mint(net.rich, Units(PLENTY))
        await node.mine(25)
        async with net.connected() as chain:
            net.chain = chain
            yield net
