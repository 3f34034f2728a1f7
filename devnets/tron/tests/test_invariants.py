"""What stays true of the local node whatever happens on it: no sun is made or lost, and every block can be undone."""

from __future__ import annotations

from contextlib import suppress
from random import Random
from typing import Any

import pytest

from cambist_tron_node import NoMachine, Parameters, TronNode, keys, proto
from cambist_tron_node.refusals import RefusedError
from cambist_tron_node.sending import NotCarriedOutError
from cambist_tron_node.state import BANDWIDTH, ENERGY, Account
from cambist_tron_node.transactions import UNSTAKE, WITHDRAW

TRX = 1_000_000
STEPS = 100


class Life:
    """Random things that people do, and what the node knew after the blocks of its present branch."""

    def __init__(self, node: TronNode, random: Random) -> None:
        self.node = node
        self.random = random
        self.people = [*node.accounts[:3], node.new_account("a friend")]
        self.known = {node.head: self.records()}

    async def stake_first(self) -> None:
        """Let everybody have some stake to begin with."""
        for person in self.people[:3]:
            for resource in (BANDWIDTH, ENERGY):
                await self.node.stake(person, 1_000 * TRX, resource=resource)
        await self.look_back()

    def records(self) -> dict[Any, Any]:
        return dict(self.node.chain.state.ledger._records)

    def worth(self) -> int:
        """Return all the sun there is, wherever it lies, and all that was burned."""
        accounts = [each for each in self.records().values() if isinstance(each, Account)]
        staked = sum(each.staked + each.lent for account in accounts for each in (account.net, account.energy))
        unstaking = sum(each.amount for account in accounts for each in account.unstaking)
        return sum(each.balance for each in accounts) + staked + unstaking + self.node.chain.state.burned

    def check_stakes(self) -> None:
        """Check that what is lent is borrowed, and that all stakes make up the weight."""
        accounts = [each for each in self.records().values() if isinstance(each, Account)]
        state = self.node.chain.state
        for which, others in ((BANDWIDTH, Parameters().bandwidth_weight), (ENERGY, Parameters().energy_weight)):
            resources = [each.resource(which) for each in accounts]
            assert sum(each.lent for each in resources) == sum(each.borrowed for each in resources)
            assert state.weight(which) - others == sum((each.staked + each.lent) // TRX for each in resources)

    async def step(self) -> None:
        """Do something, which may be refused."""
        node, random = self.node, self.random
        one, other = random.sample(self.people, 2)
        sun, resource = random.randrange(1, 200 * TRX), random.choice([BANDWIDTH, ENERGY])
        owner = keys.address_bytes(one)
        borrowers = [keys.base58(each) for each in node.chain.state.partners("receivers", owner)]
        borrower = random.choice(borrowers) if borrowers else other
        unstaked = proto.new(UNSTAKE, owner_address=owner, unfreeze_balance=sun, resource=resource)
        with suppress(RefusedError, NotCarriedOutError):
            await random.choice([
                lambda: node.send_trx(other, sun, sender=one),
                lambda: node.send_trx(other, sun, sender=one),
                lambda: node.stake(one, sun, resource=resource),
                lambda: node.delegate(one, other, sun, resource=resource),
                lambda: node.undelegate(one, borrower, sun // 4, resource=resource),
                lambda: node.submit(UNSTAKE, unstaked),
                lambda: node.submit(WITHDRAW, proto.new(WITHDRAW, owner_address=owner)),
                lambda: node.advance(random.choice([3, 3_600, 86_400, 15 * 86_400])),
            ])()  # fmt: skip
        if random.random() < 0.6:
            await node.mine()
        await self.look_back()

    async def look_back(self) -> None:
        """Check what the node tells of the past, and remember the present without what waits."""
        chain = self.node.chain
        await chain.pool.take_back()
        self.known[self.node.head] = self.records()
        await chain.pool.put_back(chain.now_ms())
        lag = self.random.randrange(1, 8)
        height = max(self.node.head - lag, 0)
        before = self.known.get(height)
        if before is not None:
            past = chain.view(lag=lag).state._records
            assert {key: past.get(key) for key in before} == before
            assert all(past.get(key) is None for key in self.records() if key not in before)

    async def replace(self) -> None:
        """Replace some blocks, and check that nothing is left of them."""
        depth = self.random.randrange(1, 5)
        below = self.node.head - depth
        if below < 2 or below not in self.known:
            return
        await self.node.forget_pool()
        await self.node.reorg(depth)
        assert self.records() == self.known[below]
        self.known = {height: records for height, records in self.known.items() if height <= below}


@pytest.mark.parametrize("seed", range(12))
async def test_random_lives_make_and_lose_nothing_and_can_be_undone(seed: int) -> None:
    async with TronNode(machine=NoMachine(), clock_ms=lambda: 1_700_000_000_000) as node:
        life = Life(node, Random(seed))
        await life.stake_first()
        whole = life.worth()
        for number in range(STEPS):
            await life.step()
            assert life.worth() == whole
            life.check_stakes()
            if number % 10 == 9:
                await life.replace()
                assert life.worth() == whole
