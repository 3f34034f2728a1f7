"""What must hold whatever nodes do: a transfer that is signed anew only on proof of death arrives once."""

from __future__ import annotations

import os
from contextlib import suppress
from random import Random

import pytest

from cambist.plugin import ChainError, Dated, LendingChain, SignedTx
from cambist_tron.writing import LIFETIME_S
from cambist_tron_node import Face
from cambist_tron_node.faults import Fault

from .local import FAMILY, Net

RUNS = 40 if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else 3
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
TRANSFERS = 4
ROUNDS = 25
SOLID_DEPTH = 18

LIES = [
    Fault.FORGETFUL,
    Fault.ANSWER_LOST,
    Fault.SERVER_BUSY,
    Fault.HEAD_FROZEN,
    Fault.HEAD_BACK,
    Fault.LAGGING,
    Fault.NO_BLOCK,
    Fault.NO_INFOS,
    Fault.LITE_NODE,
    Fault.HTTP_500,
    Fault.TRUNCATED,
    Fault.RATE_LIMITED,
]


class Sender:
    """One transfer and all transactions that were ever signed for it. It signs another only when the last is dead."""

    def __init__(self, net: Net, amount: int) -> None:
        self.amount = amount
        self.to_address = net.nobody()
        self.signed: list[tuple[SignedTx, Dated]] = []

    async def step(self, net: Net, chain: LendingChain, *, is_dead: bool) -> None:
        """Sign another one where the last is dead, look, and send."""
        with suppress(ChainError):
            if is_dead:
                await self.sign(net, chain)
            tx, _ = self.signed[-1]
            if (await chain.transaction(tx.tx_id)).state in {"unknown", "pending"}:
                await chain.broadcast([tx])

    async def sign(self, net: Net, chain: LendingChain) -> None:
        """Make one more transaction for it."""
        (plan,) = await chain.plan([net.intent(net.rich, self.to_address, self.amount)], sponsor=None)
        assert plan.step is not None
        (unsigned,) = await chain.prepare([(plan.step, None)])
        tx = FAMILY.seal(unsigned, net.key(net.rich).sign_recoverable(FAMILY.digest(unsigned.payload), hasher=None))
        self.signed.append((tx, Dated(tx_id=tx.tx_id, valid_until=unsigned.valid_until or 0)))


async def tick(net: Net, senders: list[Sender], *urls: str) -> None:
    """Do what a gateway that has just been started does: ask for proofs of all at once, then go on with each."""
    async with net.connected(*urls) as chain:
        with suppress(ChainError):
            dead = await chain.expired([sender.signed[-1][1] for sender in senders])
            for sender, is_dead in zip(senders, dead, strict=True):
                await sender.step(net, chain, is_dead=is_dead)


async def trouble(net: Net, random: Random, faces: list[Face], senders: list[Sender]) -> None:
    """Let anything happen that a network and its nodes do."""
    for face in faces:
        face.clear()
        if random.random() < 0.5:
            face.faults = {random.choice(LIES)}
            face.rate = random.choice([0.2, 0.6, 1.0])
        face.hidden |= {tx.tx_id for one in senders for tx, _ in one.signed if random.random() < 0.3}
    if random.random() < 0.7:
        await net.node.forget_pool()
    if random.random() < 0.2:
        await _reorg(net, random, senders)
    await net.node.mine(random.choice([0, 1, 2, 3, 30, 70, 130]))


async def _reorg(net: Net, random: Random, senders: list[Sender]) -> None:
    """Replace some of the newest blocks; of our transactions in them, some are mined again."""
    depth = random.randrange(1, SOLID_DEPTH)
    infos = [net.node.info(tx.tx_id) for one in senders for tx, _ in one.signed]
    young = [info["id"] for info in infos if info and info["blockNumber"] > net.node.head - depth]
    await net.node.reorg(depth, [tx_id for tx_id in young if random.random() < 0.5], to_pool=random.random() < 0.5)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(FIRST, FIRST + RUNS))
async def test_every_transfer_arrives_once(net: Net, seed: int) -> None:
    """Through forks, forgetful pools, hidden transactions, lagging and failing endpoints, for as long as it takes."""
    random = Random(seed)
    senders = [Sender(net, 1_000 + number) for number in range(TRANSFERS)]
    mined, lost = senders[: TRANSFERS // 2], senders[TRANSFERS // 2 :]
    for sender in senders:
        await sender.sign(net, net.chain)
    await net.chain.broadcast([sender.signed[0][0] for sender in mined])
    await net.node.mine(LIFETIME_S // 3 + 30)
    async with net.node.face() as first, net.node.face() as second:
        faces = [first, second]
        for _ in range(ROUNDS):
            await trouble(net, random, faces, senders)
            await tick(net, senders, first.url, second.url)
        for face in faces:
            face.clear()
        for _ in range(6):
            await net.node.mine(40)
            await tick(net, senders, first.url, second.url)
    for sender in senders:
        assert net.node.balance(sender.to_address) == sender.amount
    assert [len(sender.signed) for sender in mined] == [1] * len(mined)
    assert all(len(sender.signed) > 1 for sender in lost)
