"""Receiving and sending on TRON through nodes behind one address that disagree, fail and lose parts of their answers.

What they tell is never made up, as one endpoint alone could do with what nobody signs; it is old, cut, empty, out of
order, of another block, or broken. Where two of three must agree, each may be away, far behind, or not know of payouts
for a while, too. Whatever comes of it in between, in the end each deposit that the chain holds is there once with its
amount, each payout arrived once or its money is back, and the books equal the chain.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from contextlib import AsyncExitStack, suppress
from random import Random
from typing import Any

import pytest
from aiohttp import web

from cambist.plugin import ChainError
from cambist.registry import Registry
from cambist.testing.mutations import mutate, paths_in
from cambist_tron_node import Face, TronNode
from tests.support.tron_treasury import PLUGIN, SUN, TronTreasury, plugin_context

pytestmark = pytest.mark.slow

RUNS, ROUNDS = (20, 100) if os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full" else (1, 20)
FIRST = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
ONE = 10**6
STRANGERS = 10**6
BEHIND = web.RequestKey("behind", int)
CHANCE = web.RequestKey("chance", Random)
TIMELY = frozenset({"transaction", "value", "contract_address"})

BLOCKS = frozenset({"getblockbylimitnext", "getblockbynum", "getblock", "getnowblock", "getnodeinfo"})
STATE = frozenset(
    "getaccount getaccountresource triggerconstantcontract getchainparameters getcandelegatedmaxsize".split()
)
INFOS = "gettransactioninfobyblocknum"
BUSY = '{"Error":"class java.lang.IllegalAccessException : lack of computing resources"}'
BROKEN = [(500, "oops"), (429, ""), (200, BUSY), (200, "<html>"), (200, ""), (200, '{"block":['), (200, "null")]
EMPTY = [(200, "{}"), (200, "[]")]


class Weather(Face):
    """An address of many nodes, of which some are behind and some fail, for as long as ``share`` is more than 0.

    What meets a request depends on what is asked, and how often it was: many are under way at once, in any order.
    While it ``is_away``, nobody gets an answer.
    """

    def __init__(self, node: TronNode, name: str) -> None:
        super().__init__(node.chain)
        self.share = 0.0
        self.is_away = False
        self._name = name
        self._asked: Counter[str] = Counter()
        self._infos: list[Any] = []

    def _chance_of(self, path: str, body: dict[str, Any]) -> Random:
        """Return the chances of one request. Transactions have the time of this machine in them, and so their ids."""
        asked = f"{path} {sorted((key, value) for key, value in body.items() if key not in TIMELY)}"
        self._asked[asked] += 1
        return Random(f"{self._name} {asked} {self._asked[asked]}")

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        chance = request[CHANCE] = self._chance_of(path, body)
        if self.is_away:
            return web.Response(status=502, text="away")
        if self.share and chance.random() < 0.3:
            request[BEHIND] = chance.choice([1, 1, 2, 3])
        if chance.random() < self.share:
            status, text = chance.choice([*BROKEN, *EMPTY, *EMPTY])
            return web.Response(status=status, text=text)
        return await super().before(path, body, request)

    def lag(self, request: web.Request, head: int) -> int:
        return min(request.get(BEHIND, 0), head) or super().lag(request, head)

    async def after(self, path: str, answer: Any, request: web.Request) -> Any:
        answer = await super().after(path, answer, request)
        name, chance = path.rpartition("/")[2], request[CHANCE]
        if name == INFOS and isinstance(answer, list):
            before, self._infos = self._infos, answer
            return _rearranged(answer, before, chance) if chance.random() < self.share else answer
        if name not in BLOCKS | STATE or not isinstance(answer, dict) or chance.random() >= self.share:
            return answer
        changed = json.loads(json.dumps(answer))
        if paths := list(paths_in(changed)):
            mutate(changed, chance.choice(paths), chance)
        return changed


def _rearranged(infos: list[Any], others: list[Any], chance: Random) -> list[Any]:
    shuffled = chance.sample(infos, len(infos))
    return chance.choice([infos[:-1], infos + infos[:1], shuffled, others, [*others[:1], *infos[1:]]])


class World:
    """What was paid and what is to be paid out, beside the gateway."""

    def __init__(self, treasury: TronTreasury, fake: Any, random: Random) -> None:
        self.treasury, self._fake, self._random = treasury, fake, random
        self.paid: dict[str, tuple[str, int]] = {}
        self.payouts: dict[str, tuple[str, str, int]] = {}

    async def turn(self) -> None:
        """Let people pay, merchants pay out, and the chain go on, or back."""
        treasury, random = self.treasury, self._random
        for _ in range(random.randrange(3)):
            address, units = await treasury.deposit_address(), random.randrange(1, 5 * ONE)
            kind = random.choice(["USDT", "TRX", "another USDT"])
            if kind == "another USDT":
                await self._fake.mint(address, units)
            elif kind == "USDT":
                self.paid[await treasury.tokens["USDT"].mint(address, units)] = address, units
            else:
                self.paid[await treasury.node.send_trx(address, units)] = address, units
        if random.random() < 0.4:
            symbol, units = random.choice(["USDT", "TRX"]), random.randrange(1, 3 * ONE)
            to_address = await treasury.stranger(random.randrange(STRANGERS))
            self.payouts[await treasury.pay_out(symbol, units, to_address)] = symbol, to_address, units
        if random.random() < 0.05:
            await treasury.node.forget_pool()
        elif random.random() < 0.15:
            await treasury.node.reorg(random.randrange(1, 3), to_pool=True)
        await treasury.node.mine(random.choice([1, 1, 2, 30]))
        treasury.clock.advance(random.choice([2, 6, 40]))

    async def change(self, faces: list[Weather]) -> None:
        """Let each address be there or not, as far as the others or behind, and know of all payouts or of new ones."""
        random = self._random
        for face in faces:
            face.is_away = random.random() < 0.1
            face.lag_blocks = random.choice([0, 0, 0, 0, 1, 2, 4, 9])
            if random.random() < 0.1:
                signed = [await self.treasury.signed_for(payout_id) for payout_id in self.payouts]
                face.hidden = {tx_id for some in signed for tx_id, _ in some}

    async def check(self) -> None:
        """Compare what the gateway says with the chain."""
        treasury = self.treasury
        for payout_id, (symbol, to_address, units) in self.payouts.items():
            status = (await treasury.payout(payout_id)).status
            assert status in {"completed", "failed"}
            assert await treasury.on_chain(to_address, symbol) == (units if status == "completed" else 0)
        mined = Counter(paid for tx_id, paid in self.paid.items() if treasury.node.info(tx_id) is not None)
        addresses = {address for address, _ in self.paid.values()}
        async with treasury.db.transaction() as conn:
            rows = await conn.exec_driver_sql(
                "SELECT a.address, d.units FROM deposits d JOIN addresses a ON a.id = d.address_pk"
                " WHERE d.status = 'confirmed'"
            )
            found = Counter((row.address, int(row.units)) for row in rows if row.address in addresses)
        assert found == mined
        await treasury.check_books()


@pytest.mark.campaign
@pytest.mark.parametrize("quorum", [1, 2])
@pytest.mark.parametrize("seed", range(FIRST, FIRST + RUNS))
async def test_each_deposit_and_payout_is_counted_once_in_any_weather(db, clock, ids, tmp_path, seed, quorum):
    random = Random(seed)
    async with AsyncExitStack() as stack:
        node = await stack.enter_async_context(TronNode(representatives=4))
        count = 1 + seed % 2 if quorum == 1 else 3
        faces = [await stack.enter_async_context(Weather(node, f"{seed} {name}")) for name in range(count)]
        usdt, fake = [await node.deploy_token("USDT", 6, usdt_like=True) for _ in range(2)]
        await node.mine()
        token = {"symbol": "USDT", "contract": usdt.address, "decimals": 6}
        local = {"network": "local", "rpc_urls": [face.url for face in faces], "quorum": quorum, "confirmations": 3}
        chains = Registry({"tron": {**local, "tokens": [token]}}, found=[PLUGIN])
        connected = await stack.enter_async_context(chains.connect_chains(plugin_context(clock.monotonic)))
        treasury = TronTreasury(db, clock, ids, tmp_path, chain=connected["tron"], chains=chains)
        treasury.node, treasury.tokens = node, {"USDT": usdt}
        treasury.prices.board |= {("USDT", "usd"): "1", ("TRX", "usd"): "0.25"}
        await stack.enter_async_context(treasury)
        await treasury.open()
        if seed % 3 == 0:
            await treasury.change_stake("stake", 5000 * SUN)
        await treasury.receive_many("USDT", [1000 * ONE])
        await treasury.receive_many("TRX", [500 * ONE])
        engine, world = treasury.engine(), World(treasury, fake, random)
        await treasury.work(engine)
        for face in faces:
            face.share = random.choice([0.01, 0.02, 0.04])
        for _ in range(ROUNDS):
            await world.turn()
            if quorum > 1:
                await world.change(faces)
            with suppress(ChainError):
                await treasury.poll()
            with suppress(ChainError):
                await engine.tick()
        for face in faces:
            face.share, face.is_away = 0.0, False
            face.clear()
        for _ in range(12):
            await node.mine(12)
            clock.advance(45)
            with suppress(ChainError):
                await treasury.poll()
            with suppress(ChainError):
                await engine.tick()
        await treasury.work(engine, rounds=150)
        await world.check()
