"""Everything at once: money moves, the chain turns back, nodes lie, workers die, and lists of addresses change.

At the end each tracker has heard of each movement, in order, under one id for each thing that became of it; and each
account has what the chain brought it.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, defaultdict
from contextlib import suppress
from random import Random

import pytest

from cambist.domain.money import parse_units
from cambist.domain.webhooks import RetrySchedule
from cambist.hints import Hints
from cambist.plugin import ChainError
from cambist.secrets import SecretsBox
from cambist.services.addresses.macs import AddressMacs
from cambist.services.receiving.accounts.deposits import balances
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.services.receiving.history import Progress, reader
from cambist.services.trackers import fan_out
from cambist.services.trackers.fan_out import FanOut
from cambist.services.webhooks.delivery import Deliverer
from cambist.services.webhooks.sender import open_sender
from cambist.settings import WebhookTargets
from cambist.testing.memory import memory_chain_info
from cambist.testing.memory.blocks import Output
from cambist.testing.memory.family import named_address
from tests.support.account_rows import insert_account
from tests.support.fragile import FragileDatabase, KilledError, Life
from tests.support.past import Past
from tests.support.payment_env import registry
from tests.support.tracker_campaign import Ear, TurncoatChain, brought, check_list, check_order, check_tracker, watching
from tests.support.trackers import SECRET, Watchers
from tests.support.webhooks import SECRET as PROJECT_SECRET
from tests.support.webhooks import receiver, signing_secrets

FULL = os.environ.get("CAMBIST_TEST_CAMPAIGNS") == "full"
SEED = int(os.environ.get("CAMBIST_TEST_SEED", "0"))
SEEDS, ROUNDS = (60, 300) if FULL else (2, 120)
STEPS = 8
"""Of reading the past, in one go."""
POLLS = 30
"""In one go: a chain that is changed in the middle of polls may grow faster than it is read."""
STRANGERS = [named_address(f"stranger {number}") for number in range(6)]


class Campaign:
    """Two workers, a few accounts and trackers, of which the first keeps its list, and everything that may happen."""

    def __init__(self, shop, clock, sender, url, seed):
        self.shop, self.clock, self.sender, self.url, self.chance = shop, clock, sender, url, Random(seed)
        self.chain = TurncoatChain(memory_chain_info(), genesis_time=int(clock.now().timestamp()) - 600, seed=seed)
        self.registry = registry()
        self.ear = Ear(self.chance, {"/hook": PROJECT_SECRET, "/hook/trackers": SECRET})
        self.accounts: dict[str, str] = {}
        self.trackers = []
        self.read: set[str] = set()
        self.done: Counter[str] = Counter()

    async def open(self):
        async with self.shop.db.transaction() as conn:
            await conn.exec_driver_sql(
                "UPDATE projects SET payment_webhook_url = $1, webhook_secret_encrypted = $2, extended_events = true",
                (self.url, signing_secrets().seal("prj_1", PROJECT_SECRET)),
            )
        watchers = Watchers(self.shop.db, self.shop.project, family=self.shop.family.name)
        for start_block, past in ((0, False), (0, False), (0, False), (20, False), (10, True)):
            tracker = await watching(self, watchers, self.clock, self.url, start_block, past=past)
            self.trackers.append(tracker)
            self.ear.listening[tracker.access.webhook_id] = tracker
            for address in STRANGERS[:2] if past else STRANGERS[2 * len(self.trackers) - 2 :]:
                await tracker.add(address)
        self.progress = Progress()
        self.workers = [self.worker() for _ in range(2)]
        await self.open_account()
        await self.workers[0].poll(Life())
        return self

    def worker(self):
        return Worker(self)

    @property
    def watched(self):
        """Addresses that anybody may watch: strangers' and our own."""
        return [*STRANGERS, *self.accounts.values()]

    # What may happen.

    def outputs(self):
        tokens = [token.contract for token in self.chain.info.tokens[:2]]
        return [
            Output(
                contract=self.chance.choice([*tokens, tokens[1], "a token that nobody registered"]),
                recipient=self.chance.choice([*self.watched, self.chain.faucet]),
                amount=self.chance.choice([0, 1, 250_000, 10**6, 7 * 10**6]),
            )
            for _ in range(self.chance.choice([1, 1, 1, 2, 4]))
        ]

    def move(self):
        for _ in range(self.chance.randint(1, 3)):
            sender = self.chance.choice([None, None, *STRANGERS[:3]])
            self.chain.submit(self.outputs(), sender=sender, reverts=self.chance.random() < 0.05)

    def mine(self):
        self.chain.mine(self.chance.choice([1, 1, 2, 4]))

    def turn(self):
        self.chain.turn(self.chance, self.outputs())

    def other_branch(self):
        """Have the endpoint show the branch that won; or, where it does, the one that was left last."""
        self.chain.left = self.chain.former if self.chain.left is None and self.chance.random() < 0.5 else None

    def fault(self):
        faults = self.chain.faults
        self.chain.lie = faults.rate_limited_s = faults.span_max = None
        faults.failing_calls = faults.lag_blocks = 0
        kind = self.chance.choice(["lie", "fails", "lags", "slow", "narrow", "well", "well"])
        if kind == "lie":
            self.chain.lie = self.chance.choice(["twice", "other blocks", "skips"])
        faults.failing_calls = self.chance.randint(1, 6) if kind == "fails" else 0
        faults.lag_blocks = self.chance.randint(1, 5) if kind == "lags" else 0
        faults.rate_limited_s = 1.0 if kind == "slow" else None
        faults.span_max = 1 if kind == "narrow" else None

    def pass_time(self):
        self.clock.advance(self.chance.choice([1, 5, 40]))

    async def open_account(self):
        if len(self.accounts) < 3:
            macs, name = AddressMacs(SecretsBox([b"k" * 32], bytes)), str(len(self.accounts) + 1)
            shop = self.shop
            _, address = await insert_account(
                shop.db, macs, shop.family, project_pk=shop.project, chains=["memory"], now=self.clock.now(), name=name
            )
            self.accounts[f"acc_{name}"] = address
            await self.trackers[0].add(address)

    async def change_list(self):
        tracker, address = self.chance.choice(self.trackers[1:]), self.chance.choice(self.watched)
        await (tracker.remove if address in tracker.since else tracker.add)(address)

    async def switch(self):
        # What moves while it is off is told afterwards by one that reads the past only where it is begun anew.
        await self.chance.choice([one for one in self.trackers[1:] if not one.reads_past]).switch()

    async def work(self):
        """Have both workers poll and tell at once, while the chain and the lists go on; then deliver."""
        beside = [self.change_list] if self.chance.random() < 0.3 else []
        self.chain.faults.before = self.meddle if self.chance.random() < 0.3 else None
        polls = [self.outlived(number, name) for number in (0, 1) for name in ("poll", "tell", "read_past")]
        await asyncio.gather(*polls, *(one() for one in beside))
        self.chain.faults.before = None
        await self.note_read()
        await asyncio.gather(*(self.outlived(number, "deliver") for number in (0, 1)))
        self.ear.check()

    async def meddle(self, _call):
        """Change the chain in the middle of a poll."""
        if self.chance.random() < 0.1:
            self.chance.choice([self.move, self.mine, self.turn])()

    async def outlived(self, number, name):
        """Let a worker do one thing, and put another in its place where it dies of that."""
        worker = self.workers[number]
        life = Life(self.chance.randint(1, 40) if self.chance.random() < 0.3 else None)
        try:
            await getattr(worker, name)(life)
        except KilledError:
            self.done["death"] += 1
            if self.workers[number] is worker:
                self.workers[number] = self.worker()

    async def note_read(self):
        """Note every block below the cursor: of those the gateway says that it has read them."""
        async with self.shop.db.transaction() as conn:
            at = (await conn.exec_driver_sql("SELECT hash FROM chain_cursors")).scalar_one()
        while at in self.chain.ever and at not in self.read:
            self.read.add(at)
            at = self.chain.ever[at][0].header.parent_hash

    async def step(self):
        weights = {
            self.move: 6, self.mine: 6, self.work: 8, self.turn: 1, self.other_branch: 2, self.fault: 2,
            self.pass_time: 2, self.change_list: 2, self.switch: 0.5, self.open_account: 0.5,
        }  # fmt: skip
        (action,) = self.chance.choices(list(weights), list(weights.values()))
        self.done[action.__name__] += 1
        made = action()
        if made is not None:
            await made

    # How it ends.

    async def end(self):
        """Have the chain stand still, and give whoever is left all the time there is."""
        faults = self.chain.faults
        self.chain.lie = self.chain.left = faults.span_max = faults.rate_limited_s = None
        faults.failing_calls = faults.lag_blocks = 0
        self.chain.mine(1)
        self.chain.forget()
        self.chain.mine(self.chain.info.confirmations + 6)
        worker = self.worker()
        await worker.poll(Life())
        await self.note_read()
        assert self.chain._blocks[-1].header.hash in self.read
        await worker.tell(Life())
        while not await worker.read_past(Life()):
            self.clock.advance(40)
        for _ in range(20):
            self.clock.advance(40)
            if not await worker.deliver(Life()) and not await self.left():
                break
        self.ear.check()
        assert await self.left() == 0

    async def left(self):
        async with self.shop.db.transaction() as conn:
            found = await conn.exec_driver_sql("SELECT count(*) FROM webhook_deliveries WHERE status = 'pending'")
            return found.scalar_one()

    async def behind(self):
        """Return how many blocks were behind the reader of the past when it began, all of which are read by now."""
        async with self.shop.db.transaction() as conn:
            found = await conn.exec_driver_sql("SELECT state, from_block, to_block FROM tracker_histories")
            state, first, last = found.one()
        assert state == "done"
        return 0 if last is None else last - first + 1

    async def check(self):
        wanted = 0
        for tracker in self.trackers:
            told = self.ear.told(tracker.access.webhook_id)
            wanted += check_tracker(self.chain, tracker, told, self.read)
            await check_list(self.chain, tracker, self.shop, told)
        assert wanted > ROUNDS // 8, wanted
        await self.check_accounts()
        await self.check_usage()

    async def check_accounts(self):
        told = self.ear.told("prj_1")
        stages, last = defaultdict(list), {}
        for one in told:
            data = one["data"]
            stages[data["depositId"]].append((data["status"], data["incarnation"]))
            last[data["depositId"]] = data
        for deposit, seen in stages.items():
            check_order(seen, "detected")
            first = [incarnation for status, incarnation in seen if status == "detected"]
            assert first == sorted(set(first)), (deposit, seen)
        standing = Counter(
            (one["txHash"], one["address"], one["token"], one["amount"])
            for one in last.values()
            if one["status"] == "confirmed"
        )
        assert all(one["status"] in {"confirmed", "orphaned"} for one in last.values())
        sums = Counter()
        for account, address in self.accounts.items():
            came = brought(self.chain, address)
            mine = {key: count for key, count in standing.items() if key[1] == address}
            assert mine == {(one.tx_id, address, one.token, one.amount): count for one, count in came.items()}
            units = Counter()
            for block in self.chain.best().values():
                for _, _, output in block.movements():
                    if output.amount and output.recipient == address and self.chain.is_registered(output.contract):
                        units[output.contract] += output.amount
            async with self.shop.db.transaction() as conn:
                found = await balances(conn, self.shop.project, account)
            assert {one.contract_address: parse_units(one.balance, one.decimals) for one in found} == units, account
            assert all((one.pending, one.held) == ("0", "0") for one in found)
            sums += units
        for token in self.chain.info.tokens:
            found = await self.shop.balance(f"memory/{token.contract or 'native'}")
            assert found == ({"available": sums[token.contract]} if sums[token.contract] else {}), token.symbol
        await self.shop.check_books()

    async def check_usage(self):
        """Check that each transaction costs its tracker once, and each delivery its project once."""
        async with self.shop.db.transaction() as conn:
            row = (
                await conn.exec_driver_sql(
                    "SELECT (SELECT count(*) FROM tracker_transactions),"
                    " (SELECT coalesce(sum(weight), 0) FROM usage_records WHERE operation = 'tracker'),"
                    " (SELECT count(*) FROM webhook_deliveries WHERE status = 'delivered'),"
                    " (SELECT count(*) FROM usage_records WHERE operation = 'webhook_delivery')"
                )
            ).one()
        assert row[0] == row[1]
        # What was refused may have been taken off a list before it was sent again.
        assert row[2] == row[3] <= len(self.ear.bodies)


class Worker:
    """What a worker process does, with what it holds in memory; whoever dies in it, the next one begins anew."""

    def __init__(self, campaign):
        self.campaign = campaign
        self.shop, self.chain, self.clock = campaign.shop, campaign.chain, campaign.clock
        self.sender = campaign.sender
        self.cache = AddressCache(self.shop.db, self.shop.family, "live")
        self.past = Past(self.shop.db, self.chain, self.shop.family, self.clock)

    async def poll(self, life):
        watcher = Watcher(
            db=FragileDatabase(self.shop.db, life),
            chain=self.chain,
            family=self.shop.family,
            address_cache=self.cache,
            scope=0,
            mode="live",
            clock=self.clock,
            ids=self.shop.ids,
            hints=Hints(None),
        )
        with suppress(ChainError):
            for _ in range(POLLS):
                if not (await watcher.poll()).behind:
                    return

    async def tell(self, life):
        await FanOut(FragileDatabase(self.shop.db, life), self.clock, Hints(None)).drain("memory", 0)

    async def read_past(self, life):
        """Read some spans of the past, and say whether nothing is left. Progress is kept by what is committed alone."""
        past, campaign = self.past, self.campaign
        past.reader._db = past.db = FragileDatabase(self.shop.db, life)
        past.progress = campaign.progress
        try:
            for _ in range(STEPS):
                step = await past.step()
                campaign.progress = past.progress
                campaign.done["blocks of the past"] += step.blocks
                if step.over:
                    return True
        finally:
            campaign.progress = past.progress
        return False

    async def deliver(self, life):
        worker = Deliverer(
            db=FragileDatabase(self.shop.db, life),
            sender=self.sender,
            secrets=signing_secrets(),
            hints=Hints(None),
            clock=self.clock,
            schedule=RetrySchedule(),
            timeout_ms=30_000,
        )
        return await worker.deliver_due()


@pytest.mark.campaign
@pytest.mark.parametrize("seed", range(SEED, SEED + SEEDS))
async def test_each_movement_is_told_and_each_balance_right_whatever_happens(shop, clock, seed, monkeypatch):
    # So few that what comes next is looked up ahead, as where a block has thousands.
    monkeypatch.setattr(fan_out, "STAGES_FIRST", 2)
    monkeypatch.setattr(fan_out, "STAGES_MAX", 2 + seed % 3)
    monkeypatch.setattr(reader, "BEHIND_PAUSE_S", 0)
    targets = WebhookTargets(allow_private=True, allow_http=True)
    async with receiver() as server, open_sender(clock=clock, timeout_ms=30_000, targets=targets) as sender:
        campaign = await Campaign(shop, clock, sender, server.url, seed).open()
        server.answer = campaign.ear.answer
        for _ in range(ROUNDS):
            await campaign.step()
        await campaign.end()
        await campaign.check()
        assert campaign.done["blocks of the past"] > 0 or await campaign.behind() < ROUNDS // 8
