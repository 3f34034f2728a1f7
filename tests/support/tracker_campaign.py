"""A chain that changes its mind, trackers whose lists change, a receiver, and a model of what each must have heard.

The model knows the chain's own blocks, when merchants' calls were answered, and how far the gateway says it has read;
of how the gateway works it knows nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

import msgspec
from aiohttp import web

from cambist.domain.money import format_units
from cambist.plugin import ScanResult, Span, Watch
from cambist.services.actor import Actor
from cambist.services.listing import Part
from cambist.services.trackers import addresses, changes
from cambist.services.trackers.addresses import Checked
from cambist.services.trackers.credentials import TrackerAccess
from cambist.services.trackers.transactions import Wanted, list_transactions
from cambist.testing.memory import MemoryChain, MemoryView
from cambist.testing.memory.blocks import MinedBlock, Output
from tests.support.shop import Shop
from tests.support.trackers import Watchers
from tests.support.webhooks import Received


class Moved(NamedTuple):
    """One end of a transfer, as whoever watches that end is told of it."""

    tx_id: str
    direction: str
    address: str
    token: str
    amount: str
    sender: str
    recipient: str


class TurncoatView(MemoryView):
    """Lies about every span for as long as the chain says so."""

    async def scan(self, span: Span, watch: Watch) -> ScanResult:
        result = await super().scan(span, watch)
        chain = self.chain
        assert isinstance(chain, TurncoatChain)
        if chain.lie == "twice":
            return msgspec.structs.replace(result, transfers=[*result.transfers, *result.transfers])
        if chain.lie == "other blocks":
            blocks = [msgspec.structs.replace(block, hash="0" * 64) for block in result.blocks]
            return msgspec.structs.replace(result, blocks=blocks)
        if chain.lie == "skips":
            return msgspec.structs.replace(result, blocks=result.blocks[1:])
        return result


class TurncoatChain(MemoryChain):
    """Keeps every block that was ever mined, with its moment, and can show the branch that it has left last."""

    view_type = TurncoatView
    lie: str | None = None
    left: Sequence[MinedBlock] | None = None
    """What the endpoint shows instead of the best chain, while it is set."""
    former: Sequence[MinedBlock] | None = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.moment = 0
        self.ever: dict[str, tuple[MinedBlock, int]] = {}

    def tick(self) -> int:
        self.moment += 1
        return self.moment

    def _append(self, *args: Any) -> None:
        super()._append(*args)
        self.ever[self._blocks[-1].header.hash] = (self._blocks[-1], self.tick())

    def seen(self) -> Sequence[MinedBlock]:
        blocks = self._blocks if self.left is None else self.left
        return blocks[: max(1, len(blocks) - self.faults.lag_blocks)]

    def turn(self, chance: Random, outputs: Sequence[Output]) -> None:
        """Leave up to five blocks. Of their transactions some come back, and one of those pays others than before."""
        if not self.height:
            return
        before = list(self._blocks)
        depth = chance.randint(1, min(5, self.height))
        dropped = [tx for block in before[-depth:] for tx in block.transactions]
        again = [tx for tx in dropped if chance.random() < 0.6]
        other = again.pop() if len(again) > 1 and chance.random() < 0.5 else None
        self.reorg(depth, mine_again=[tx.id for tx in again], new_blocks=depth + chance.randint(0, 1))
        if other is not None:
            self.pool.add(msgspec.structs.replace(other, outputs=tuple(outputs)))
        if chance.random() < 0.4:
            self.left = before
        self.former = before

    def best(self) -> dict[str, MinedBlock]:
        return {block.header.hash: block for block in self._blocks}

    def moved(self, block: MinedBlock) -> Iterator[Moved]:
        """Yield both ends of what a block moved of registered coins."""
        tokens = {token.contract: token for token in self.info.tokens}
        for tx, _, output in block.movements():
            token = tokens.get(output.contract)
            if token is None or not output.amount:
                continue
            amount = format_units(output.amount, token.decimals)
            for direction, address in (("in", output.recipient), ("out", tx.sender)):
                yield Moved(tx.id, direction, address, token.symbol, amount, tx.sender, output.recipient)


class Watching:
    """A tracker as its merchant has it. Its list and switch change through the gateway's own services."""

    def __init__(
        self, access: TrackerAccess, start_block: int, campaign: Any, clock: Any, *, reads_past: bool = False
    ) -> None:
        self.access, self.start_block, self.campaign, self.clock = access, start_block, campaign, clock
        self.reads_past = reads_past
        self.since: dict[str, int] = {}
        """When the answer came that an address was added, for each that is on the list."""
        self.ever: set[str] = set()
        self.removed: set[str] = set()
        """What was taken off the list once, though it may be on it again."""
        self.on_since: int | None = 0

    async def add(self, address: str) -> None:
        self.ever.add(address)
        async with self.campaign.shop.db.transaction() as conn:
            one = Checked(index=0, address=address)
            await addresses.add_one(conn, self.access, self.campaign.registry, one, now=self.clock.now())
        self.since.setdefault(address, self.campaign.chain.tick())

    async def remove(self, address: str) -> None:
        async with self.campaign.shop.db.transaction() as conn:
            await addresses.remove_one(conn, self.access, address)
        del self.since[address]
        self.removed.add(address)

    async def switch(self) -> None:
        turn = changes.switch_on if self.on_since is None else changes.switch_off
        async with self.campaign.shop.db.transaction() as conn:
            await turn(conn, self.access, now=self.clock.now())
        self.on_since = self.campaign.chain.tick() if self.on_since is None else None

    def hears(self, address: str) -> bool:
        return self.on_since is not None and address in self.since

    def heard_since(self, address: str, moment: int) -> bool:
        """Whether the address was watched from this moment until now without a break."""
        return self.on_since is not None and self.on_since < moment and self.since.get(address, moment) < moment

    def reads(self, address: str) -> bool:
        """Whether what stands of the address must be told, however late it came on the list."""
        return self.reads_past and address in self.since


async def watching(
    campaign: Any, watchers: Watchers, clock: Any, url: str, start_block: int = 0, *, past: bool = False
) -> Watching:
    """Make a tracker with nothing on its list."""
    shop: Shop = campaign.shop
    pk = await watchers.make([], url=f"{url}/trackers", start_block=start_block, past=past)
    actor = Actor(
        merchant_pk=shop.merchant, merchant_id="mer_1", project_pk=shop.project, project_id="prj_1", mode="live"
    )
    webhook_id = f"trk_{shop.project}_{watchers.made}"
    access = TrackerAccess(
        pk=pk, webhook_id=webhook_id, chain="memory", mode="live", scope=0, token_hash=b"", actor=actor, suspended=False
    )
    return Watching(access, start_block, campaign, clock, reads_past=past)


class Ear:
    """A merchant's server, which refuses now and then, and keeps what came in the order in which it first came."""

    def __init__(self, chance: Random, secrets: dict[str, str]) -> None:
        self.chance, self.secrets = chance, secrets
        self.bodies: dict[str, bytes] = {}
        self.refused: Counter[str] = Counter()
        self.repeated = 0
        self.listening: dict[str, Watching] = {}
        self.wrong: list[object] = []

    def check(self) -> None:
        assert self.wrong == []

    async def answer(self, request: web.Request) -> web.Response:
        received = Received(request.path_qs, dict(request.headers), await request.read())
        received.verify(self.secrets[received.path])
        name, body = received.headers["X-Webhook-Id"], msgspec.json.decode(received.body)
        if self.bodies.setdefault(name, received.body) != received.body:
            self.wrong.append(("an id that was told of something else", name))
        tracker = self.listening.get(body["webhookId"])
        if tracker is not None and not tracker.hears(body["data"]["address"]):
            self.wrong.append(("told of what nobody wants to hear", body))
        self.repeated += received.body is not self.bodies[name]
        if self.refused[name] < 2 and self.chance.random() < 0.15:
            self.refused[name] += 1
            return web.Response(status=500)
        return web.Response(status=200)

    def told(self, webhook_id: str) -> list[dict[str, Any]]:
        """Return the events of one tracker, or of the project, each once."""
        every = [msgspec.json.decode(body) for body in self.bodies.values()]
        return [one for one in every if one["webhookId"] == webhook_id]


def check_order(stages: Sequence[tuple[str, object]], first: str) -> None:
    """Check that each incarnation was told from its beginning, in order, before the next one.

    ``stages`` are pairs of a stage and of what tells its incarnation from the one before.
    """
    now: tuple[str, object] = ("orphaned", None)
    for stage, incarnation in stages:
        if stage == first:
            assert now[0] == "orphaned", stages
        else:
            assert now[0] in ({first} if stage == "confirmed" else {first, "confirmed"}), stages
            assert now[1] == incarnation, stages
        now = stage, incarnation


class Heard:
    """What one tracker heard, by block and by transaction."""

    def __init__(self, told: Sequence[dict[str, Any]]) -> None:
        self.stages: dict[str, list[tuple[str, str]]] = defaultdict(list)
        self.tx_ids: dict[str, str] = {}
        self.ends: dict[str, tuple[str, ...]] = {}
        ids: dict[tuple[str, str, Moved], set[str]] = defaultdict(set)
        last: dict[str, tuple[str, str, Moved]] = {}
        for one in told:
            data = one["data"]
            ends = data["from"], data["to"]
            moved = Moved(data["txHash"], data["direction"], data["address"], data["token"], data["amount"], *ends)
            key, name = (data["status"], data["blockHash"], moved), data["transactionId"]
            assert one["event"] == f"transaction.{data['status']}", one
            assert self.tx_ids.setdefault(name, moved.tx_id) == moved.tx_id, one
            assert self.ends.setdefault(name, moved[1:3]) == moved[1:3], one
            ids[key].add(name)
            last[name] = key
            self.stages[name].append(key[:2])
        self.counts = Counter({key: len(found) for key, found in ids.items()})
        self.at_last = Counter(last.values())

    def ends_of(self, block_hash: str, moved: Moved, *, stands: bool) -> int:
        """Return how many of a block's movements were heard of to their end."""
        return self.at_last["confirmed", block_hash, moved] if stands else self.counts["orphaned", block_hash, moved]


def check_tracker(chain: TurncoatChain, tracker: Watching, told: Sequence[dict[str, Any]], read: set[str]) -> int:
    """Compare what a tracker heard with all blocks there ever were; return how many transfers it had to hear of.

    It had to hear of what it watched without a break since before the block was mined, where the gateway says that it
    has read the block; and of what stands at last, where it reads the past of what it watches.
    """
    best, heard, wanted = chain.best(), Heard(told), 0
    unbroken: dict[str, bool] = defaultdict(lambda: True)
    since_it_came: dict[str, bool] = defaultdict(lambda: True)
    possible: Counter[tuple[str, Moved]] = Counter()
    for block_hash, (block, moment) in chain.ever.items():
        if block.header.height < tracker.start_block:
            continue
        for moved, count in Counter(chain.moved(block)).items():
            if moved.address not in tracker.ever:
                continue
            possible[block_hash, moved] = count
            lives, reads = tracker.heard_since(moved.address, moment), tracker.reads(moved.address)
            unbroken[moved.tx_id] &= lives
            since_it_came[moved.tx_id] &= tracker.reads_past and moved.address not in tracker.removed
            if block_hash in read:
                must = lives or (reads and block_hash in best)
                wanted += count * must
                # What had its end before the address came on the list may be heard of from its end on.
                assert not lives or heard.counts["detected", block_hash, moved] == count, moved
                assert not must or heard.ends_of(block_hash, moved, stands=block_hash in best) == count, moved
    for (stage, block_hash, moved), count in heard.counts.items():
        assert count <= possible[block_hash, moved], (stage, moved)
    for name, stages in heard.stages.items():
        if unbroken[heard.tx_ids[name]] or since_it_came[heard.tx_ids[name]]:
            # What was seen before the address came on the list may be heard of from its end on.
            late = since_it_came[heard.tx_ids[name]] and stages[0][0] == "confirmed"
            check_order([("detected", stages[0][1]), *stages] if late else stages, "detected")
            assert stages[-1][0] == ("confirmed" if stages[-1][1] in best else "orphaned"), stages
    return wanted


async def check_list(chain: TurncoatChain, tracker: Watching, shop: Shop, told: Sequence[dict[str, Any]]) -> None:
    """Compare ``transaction/list`` with what was told and with the chain."""
    best, after, listed = chain.best(), None, []
    async with shop.db.transaction() as conn:
        while True:
            page = await list_transactions(conn, tracker.access, Wanted(), Part(limit=50, after=after))
            listed += page.items
            after = page.last
            if after is None:
                break
    names = [one.transaction_id for one in listed]
    assert len(set(names)) == len(names)
    assert {one["data"]["transactionId"] for one in told} <= set(names)
    for one in listed:
        moved = Moved(one.tx_hash, one.direction, one.address, one.token, one.amount, one.sender, one.recipient)
        assert moved in set(chain.moved(chain.ever[one.block_hash][0])), one
        assert one.status == "orphaned" or (one.status == "confirmed" and one.block_hash in best), one


def brought(chain: TurncoatChain, address: str) -> Counter[Moved]:
    """Return what came to an address on the best chain."""
    every = [moved for block in chain.best().values() for moved in chain.moved(block)]
    return Counter(moved for moved in every if (moved.direction, moved.address) == ("in", address))
