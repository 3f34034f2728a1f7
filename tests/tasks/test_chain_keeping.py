"""Endpoints and tokens that change while a worker runs: asked, taken or refused, and followed by every process."""

from __future__ import annotations

from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial

import pytest
from msgspec.structs import replace
from sqlalchemy import insert, select, update

from cambist.bootstrap import Parts, open_gateway
from cambist.db.models import AuditEntry, ChainEndpoint, ChainToken, Cursor, Payment
from cambist.domain.troubles import SetupProblem
from cambist.plugin import Token
from cambist.registry import Registry
from cambist.services.accounting.ledger import asset_key
from cambist.services.chains import endpoints, states, tokens
from cambist.services.chains.context import ChainContext
from cambist.services.chains.endpoints import NewEndpoint
from cambist.services.chains.following import Follower
from cambist.services.chains.setups import StoredEndpoint, seal, with_endpoints
from cambist.services.chains.tokens import NewToken, TokenPatch
from cambist.services.errors import ConflictError, InvalidError, NotFoundError
from cambist.services.receiving.deposits import Watcher
from cambist.testing.memory import MemoryChain, MemoryFamily, MemoryPlugin
from cambist.testing.memory.family import named_address
from cambist_tasks.chain_keeper import ChainKeeper
from cambist_tasks.watching import WatchState
from tests.support.shop import Shop, memory_of
from tests.tasks.test_worker import MEMORY, gateway_of, settings

pytestmark = pytest.mark.slow

EURX = Token(symbol="eurx", contract=named_address("deployed/EURX"), decimals=2, label="Example euro")
SECOND = "memory://second.example:8545"
FILE, USER = ("memory://memory", SECOND), "memory://user@memory"


class Keeping:
    """A worker whose parts are called by hand, and what web asks of it."""

    def __init__(self, gateway, shop):
        self.gateway, self.shop, self.db = gateway, shop, gateway.db
        self.state = WatchState(chain=gateway.chains["memory"], watching=True)
        self.keeper = ChainKeeper(gateway, [self.state])
        self.context = ChainContext(registry=gateway.registry, secrets=gateway.secrets, ids=gateway.ids)
        self.plugin = next(plugin for plugin, _ in gateway.registry._loaded[0].chain_plugins)
        assert isinstance(self.plugin, MemoryPlugin)
        self.watcher = Watcher(
            db=self.db, chain=gateway.chains["memory"], family=shop.family, address_cache=shop.address_cache,
            scope=0, mode="live", clock=gateway.clock, ids=gateway.ids, hints=gateway.hints,
            tokens_revision=partial(gateway.connections.revisions.__getitem__, "memory"),
        )  # fmt: skip

    @property
    def info(self):
        return self.gateway.registry.chains["memory"]

    @property
    def node(self):
        """The chain's own node."""
        return self.plugin.memory_chains["memory"]

    def second(self, *, seed=0, blocks=None):
        """Put another node beside it: of the same chain, unless its seed is another."""
        node = MemoryChain(self.node.info, seed=seed)
        node.mine(self.node.height if blocks is None else blocks)
        self.plugin.nodes[SECOND] = node
        return node

    async def add(self, url=SECOND, **others):
        async with self.db.transaction() as conn:
            new = NewEndpoint(url=url, **others)
            return await endpoints.add(conn, self.context, self.info, new, self.gateway.clock.now())

    async def remove(self, endpoint_id):
        async with self.db.transaction() as conn:
            now = self.gateway.clock.now()
            return await endpoints.remove(conn, self.context, self.info, endpoint_id, now)

    async def asked(self, endpoint):
        """Let the worker ask and follow, and return what became of an endpoint."""
        assert await self.keeper.ask()
        await self.keeper.follow()
        async with self.db.autocommit() as conn:
            return await endpoints.get(conn, "memory", endpoint.endpoint_id)

    async def listed(self):
        await self.keeper.report()
        async with self.db.autocommit() as conn:
            return await endpoints.list_of(conn, self.gateway.clock.now(), "memory")

    async def token(self, contract=EURX.contract, **others):
        """Add a token, and return what the worker made of it."""
        async with self.db.transaction() as conn:
            new = NewToken(chain="memory", contract=contract, **others)
            made = await tokens.add(conn, self.context, self.info, new, self.gateway.clock.now())
        assert await self.keeper.ask()
        async with self.db.autocommit() as conn:
            return await tokens.get(conn, made.token_id)

    async def decide(self, symbol, **patch):
        async with self.db.transaction() as conn:
            asset = self.info, self.info.token(symbol)
            return await tokens.change(conn, self.gateway.ids, asset, TokenPatch(**patch), self.gateway.clock.now())

    async def cursor(self):
        async with self.db.autocommit() as conn:
            return (await conn.execute(select(Cursor.height, Cursor.tokens_revision))).one()

    async def deposits(self):
        async with self.db.autocommit() as conn:
            found = await conn.exec_driver_sql("SELECT token, units, decimals FROM deposits ORDER BY id")
            return [(row.token, int(row.units), row.decimals) for row in found]


@pytest.fixture
async def keeping(db, database_url, redis_url, clock, ids, tmp_path):
    shop = await Shop(db, MemoryFamily(), clock, ids).open()
    async with gateway_of(settings(database_url, redis_url, tmp_path), ids) as gateway:
        keeping = Keeping(gateway, shop)
        keeping.node.mine(30)
        await shop.poll(keeping.watcher)
        keeping.node.mine(3)
        await shop.poll(keeping.watcher)
        yield keeping


@asynccontextmanager
async def restarted(keeping, database_url, redis_url, tmp_path):
    """Give what a worker that starts now is connected to."""
    registry = Registry({"memory": {}}, found=[MEMORY])
    registry._loaded[0].chain_plugins[0][0].nodes.update(keeping.plugin.nodes)
    configured = settings(database_url, redis_url, tmp_path)
    parts = Parts(registry=registry, keystore=keeping.gateway.signer._keystore)
    async with open_gateway(configured, role="worker", parts=parts) as gateway:
        await Follower(gateway.db, gateway.connections, registry, gateway.secrets, gateway.token_rules).follow()
        yield gateway


async def test_an_endpoint_is_taken_once_it_answers_with_the_stored_hashes_and_outlives_a_restart(
    keeping, database_url, redis_url, tmp_path
):
    (own,) = await keeping.listed()
    assert (own.origin, own.state, own.healthy, own.head) == ("file", "in_use", True, 33)
    second = keeping.second()
    asked = await keeping.add(replaces=own.endpoint_id)
    assert (asked.state, asked.name) == ("checking", "second.example:8545")
    taken = await keeping.asked(asked)
    assert (taken.state, taken.reason) == ("in_use", None)
    assert memory_of(keeping.gateway) is not keeping.node
    # The old node dies, and what is paid on the new one is credited: nothing was started again.
    keeping.node.faults.unavailable = True
    address = await keeping.shop.payment(second, "USDX", 7)
    second.transfer(second.info.token("USDX"), address, 7)
    second.mine(5)
    await keeping.shop.poll(keeping.watcher)
    assert await keeping.deposits() == [("USDX", 7, 6)]
    states_now = {one.origin: one.state for one in await keeping.listed()}
    assert states_now == {"file": "removed", "added": "in_use"}
    async with restarted(keeping, database_url, redis_url, tmp_path) as again:
        assert again.connections.setups["memory"].endpoints == (SECOND,)


async def test_another_chains_node_is_refused_and_so_are_one_that_is_behind_and_one_that_is_away(keeping):
    keeping.second(seed=9)
    refused = await keeping.asked(await keeping.add())
    assert (refused.state, refused.reason) == (
        "refused",
        "Its block 33 is another than the one that was read: this is not the same chain.",
    )
    keeping.second(blocks=20)
    refused = await keeping.asked(await keeping.add())
    assert refused.reason.startswith("It is 13 blocks behind: its newest is 20, and 33 is read.")
    refused = await keeping.asked(await keeping.add("memory://nobody"))
    assert refused.reason.startswith("It cannot be asked: ")
    assert memory_of(keeping.gateway) is keeping.node
    async with keeping.db.autocommit() as conn:
        told = select(AuditEntry.details).where(AuditEntry.action == "chain_endpoint.checked").order_by(AuditEntry.id)
        entries = (await conn.execute(told)).scalars().all()
    assert [entry["state"] for entry in entries] == ["refused"] * 3
    assert "second.example:8545" in entries[0]["name"]


async def test_a_node_that_differs_for_a_moment_while_a_reorg_goes_on_is_asked_again(keeping):
    second = keeping.second()
    second.reorg(1)
    asked, before = 0, second.met

    async def met(call, **others):
        nonlocal asked
        asked += call == "head"
        if asked == 2 and second.height == 33:
            second._blocks[:] = list(keeping.node._blocks)
        await before(call, **others)

    second.met = met
    assert (await keeping.asked(await keeping.add())).state == "in_use"
    assert asked >= 2


async def test_addresses_are_stored_encrypted_and_never_in_names_or_errors(keeping):
    url = "memory://user:s3cr3t-word@node.example/s3cr3t-key?token=s3cr3t"
    await keeping.asked(await keeping.add(url))
    async with keeping.db.autocommit() as conn:
        row = (await conn.execute(select(ChainEndpoint.__table__).where(ChainEndpoint.origin == "added"))).one()
        log = (await conn.execute(select(AuditEntry.details))).scalars().all()
    assert "s3cr3t" not in str(row) + str(log)
    assert row.name == "node.example"
    box = keeping.gateway.secrets
    from cambist.services.chains.setups import opened  # noqa: PLC0415  what nobody but workers uses

    assert opened(box, row.endpoint_id, row.url_encrypted) == url


@pytest.mark.parametrize(
    "url, told",
    [
        ("memory://169.254.169.254/latest", "link-local"),
        ("memory://[fe80::1]/", "link-local"),
        ("memory://[::ffff:169.254.169.254]/", "link-local"),
        ("memory:///nowhere", "has no host"),
        ("memory://a b", "printable ASCII"),
        ("http://elsewhere", "does not begin with"),
    ],
)
async def test_what_can_be_no_endpoint_is_refused_at_once(keeping, url, told):
    with pytest.raises(InvalidError, match=told) as refused:
        await keeping.add(url)
    assert refused.value.code == "INVALID_ENDPOINT"


async def test_the_last_endpoint_stays_and_one_of_the_file_comes_back_as_the_same(keeping):
    (own,) = await keeping.listed()
    with pytest.raises(ConflictError) as refused:
        await keeping.remove(own.endpoint_id)
    assert refused.value.code == "LAST_ENDPOINT"
    keeping.second()
    second = await keeping.asked(await keeping.add())
    with pytest.raises(ConflictError, match="already"):
        await keeping.add()
    assert (await keeping.remove(own.endpoint_id)).state == "removed"
    await keeping.keeper.follow()
    assert keeping.gateway.connections.setups["memory"].endpoints == (SECOND,)
    with pytest.raises(ConflictError):
        await keeping.remove(second.endpoint_id)
    back = await keeping.add("memory://memory")
    assert (back.endpoint_id, back.state) == (own.endpoint_id, "checking")
    await keeping.keeper.follow()
    assert keeping.gateway.connections.setups["memory"].endpoints == (SECOND,)
    assert (await keeping.asked(back)).state == "in_use"
    assert keeping.gateway.connections.setups["memory"].endpoints == ("memory://memory", SECOND)
    with pytest.raises(NotFoundError):
        await keeping.remove("end_none")


async def test_two_ways_to_one_node_are_one_witness(keeping, monkeypatch):
    registry, info = keeping.gateway.registry, keeping.info
    keeping.second()
    second = await keeping.asked(await keeping.add())
    (own,) = [one for one in await keeping.listed() if one.origin == "file"]
    async with keeping.db.transaction() as conn:
        sealed = seal(keeping.context.secrets, "end_again", USER)
        stored = {"endpoint_id": "end_again", "chain": "memory", "origin": "added", "state": "in_use", "name": "again"}
        times = dict.fromkeys(("created_at", "changed_at"), keeping.gateway.clock.now())
        await conn.execute(insert(ChainEndpoint).values(**stored, **times, url_encrypted=sealed))
    monkeypatch.setattr(registry, "setup", {info.id: replace(registry.setup(info.id), quorum=2)}.get)
    with pytest.raises(ConflictError, match=r"needs 2 .* would have 1"):
        await keeping.remove(second.endpoint_id)
    assert (await keeping.remove(own.endpoint_id)).state == "removed"


@pytest.mark.parametrize(
    "rows, asked",
    [
        ({"memory://memory": ("file", "removed")}, (SECOND,)),
        ({"memory://Memory/": ("file", "removed")}, (SECOND,)),
        ({USER: ("file", "removed")}, ("memory://memory", SECOND)),
        ({USER: ("added", "in_use")}, (SECOND, USER)),
        ({"memory://MEMORY": ("file", "removed"), USER: ("added", "in_use")}, (SECOND, USER)),
    ],
)
async def test_what_was_removed_stays_so_however_the_file_spells_it_and_what_was_added_stands(keeping, rows, asked):
    box, file = keeping.context.secrets, replace(keeping.gateway.registry.setup("memory"), endpoints=FILE)
    stored = []
    for url, (origin, state) in rows.items():
        sealed = {"endpoint_id": url, "url_encrypted": seal(box, url, url)}
        stored.append(StoredEndpoint(chain="memory", origin=origin, state=state, **sealed))
    assert with_endpoints(box, file, stored).endpoints == asked


async def test_a_token_is_found_from_the_next_block_on_and_no_scan_without_it_is_stored(keeping):
    node, shop = keeping.node, keeping.shop
    node.contracts[EURX.contract] = EURX
    address = await shop.payment(node, "USDX", 5)
    node.transfer(EURX, address, 1)
    node.mine()
    await shop.poll(keeping.watcher)
    assert await keeping.deposits() == []
    added = await keeping.token()
    assert (added.state, added.symbol, added.decimals, added.since_height) == ("enabled", "EURX", 2, 35)
    node.transfer(EURX, address, 3)
    node.mine()
    # The worker has not followed yet: what it reads without the token is not stored.
    polled = await keeping.watcher.poll()
    assert (polled.height, polled.behind) == (34, 0)
    assert (await keeping.cursor()) == (34, 1)
    await keeping.keeper.follow()
    assert keeping.gateway.registry.chains["memory"].token("EURX").decimals == 2
    await shop.poll(keeping.watcher)
    assert await keeping.deposits() == [("EURX", 3, 2)]
    # And one that is disabled is credited still.
    assert (await keeping.decide("EURX", enabled=False)).state == "disabled"
    await keeping.keeper.follow()
    assert not keeping.gateway.token_rules.is_open("memory", EURX.contract)
    node.transfer(EURX, address, 4)
    node.mine()
    await shop.poll(keeping.watcher)
    assert len(await keeping.deposits()) == 2


async def test_a_span_that_was_read_ahead_without_a_token_is_read_again_with_it(keeping):
    node, shop = keeping.node, keeping.shop
    node.contracts[EURX.contract] = EURX
    address = await shop.payment(node, "USDX", 5)
    node.mine(60)
    node.transfer(EURX, address, 3)
    node.mine()
    async with keeping.watcher.reading_ahead():
        assert (await keeping.watcher.poll()).behind == 11
        added = await keeping.token()
        await keeping.keeper.follow()
        await shop.poll(keeping.watcher)
    assert added.since_height == 84
    assert await keeping.deposits() == [("EURX", 3, 2)]


async def test_a_chain_that_is_read_for_the_first_time_asks_for_the_tokens_of_then(keeping):
    async with keeping.db.transaction() as conn:
        await conn.exec_driver_sql("DELETE FROM chain_cursors")
    keeping.node.contracts[EURX.contract] = EURX
    assert (await keeping.token()).since_height is None
    assert (await keeping.watcher.poll()).height == 33
    assert (await keeping.cursor()) == (33, 1)


@pytest.mark.parametrize(
    "told, asked, reason",
    [
        ({}, {"contract": named_address("nothing")}, "is no token contract"),
        ({"symbol": "EU\u202eRX"}, {}, "hides something"),
        ({"symbol": "€URX"}, {}, "name a symbol for it"),
        ({"symbol": "usdx"}, {}, "USDX is a token of the plugin or of the operator's file"),
        ({"decimals": 77}, {}, "36 are the most"),
    ],
)
async def test_a_contract_that_is_no_good_token_is_refused(keeping, told, asked, reason):
    keeping.node.contracts[EURX.contract] = replace(EURX, **told)
    refused = await keeping.token(**asked)
    assert refused.state == "refused"
    assert reason in refused.reason
    await keeping.keeper.follow()
    assert keeping.gateway.registry.chains["memory"] == keeping.gateway.registry.file_chains["memory"]


async def test_a_symbol_is_replaced_only_when_nothing_stands_behind_it(keeping):
    node = keeping.node
    other = replace(EURX, contract=named_address("deployed/EURX again"))
    node.contracts |= {EURX.contract: EURX, other.contract: other}
    await keeping.token()
    await keeping.keeper.follow()
    assert "name another symbol, or replace it" in (await keeping.token(other.contract)).reason
    assert "only when it is disabled" in (await keeping.token(other.contract, replaces=True)).reason
    address = await keeping.shop.payment(keeping.gateway.chains["memory"], "EURX", 5)
    await keeping.decide("EURX", enabled=False)
    assert "no payment waits for it" in (await keeping.token(other.contract, replaces=True)).reason
    for seconds, state in ((10, "refused"), (61, "enabled")):
        expires_at = keeping.gateway.clock.now() - timedelta(seconds=seconds)
        expired = {"status": "expired", "expires_at": expires_at, "grace_s": 60}
        async with keeping.db.transaction() as conn:
            await conn.execute(update(Payment).where(Payment.address == address).values(**expired))
        assert (await keeping.token(other.contract, replaces=True)).state == state
    await keeping.keeper.follow()
    assert keeping.info.token("EURX").contract == other.contract
    assert [token.contract for token in keeping.info.tokens].count(EURX.contract) == 0
    node.transfer(other, address, 2)
    node.mine(2)
    await keeping.shop.poll(keeping.watcher)
    await keeping.decide("EURX", enabled=False)
    node.contracts[EURX.contract] = EURX
    async with keeping.db.autocommit() as conn:
        asset = asset_key("memory", other.contract)
        held = await conn.exec_driver_sql("SELECT count(*) FROM deposits WHERE contract = $1", (other.contract,))
        assert held.scalar_one() == 1, asset


async def test_one_name_in_the_operators_file_stands_above_rows(keeping, database_url, redis_url, tmp_path):
    keeping.node.contracts[EURX.contract] = EURX
    await keeping.token()
    table = {
        "chains": {
            "memory": {
                "tokens": [{"symbol": "EURX", "contract": named_address("the file's"), "decimals": 4, "label": "Euro"}]
            }
        }
    }
    registry = Registry({"memory": table}, found=[MEMORY])
    follower = Follower(
        keeping.db, keeping.gateway.connections, registry, keeping.gateway.secrets, keeping.gateway.token_rules
    )
    problems = (await follower.follow()).problems
    assert problems["memory"].code is SetupProblem.SYMBOL_TAKEN


async def test_the_signers_own_file_says_what_can_be_sent(keeping):
    keeping.node.contracts[EURX.contract] = EURX
    added = await keeping.token()
    await keeping.keeper.follow()
    await keeping.keeper.ask_signer()
    assert not await keeping.gateway.signer.knows_token("memory", EURX.contract)
    assert await keeping.gateway.signer.knows_token("memory", keeping.info.token("USDX").contract)
    async with keeping.db.autocommit() as conn:
        assert (await tokens.get(conn, added.token_id)).sendable is False


async def test_who_may_ask_for_a_token_is_decided_for_all_and_for_some(keeping):
    rules, token = keeping.gateway.token_rules, keeping.info.token("USDX")
    merchant = keeping.shop.merchant
    await keeping.decide("USDX", default_enabled=False)
    await keeping.keeper.follow()
    with pytest.raises(InvalidError) as refused:
        rules.check(merchant, "memory", token)
    assert refused.value.code == "TOKEN_NOT_ENABLED"
    assert rules.is_open("memory", token.contract)
    await keeping.decide("USDX", merchants={"mer_1": True})
    await keeping.keeper.follow()
    rules.check(merchant, "memory", token)
    with pytest.raises(InvalidError):
        rules.check(merchant + 1, "memory", token)
    await keeping.decide("USDX", default_enabled=True, merchants={"mer_1": None})
    await keeping.keeper.follow()
    rules.check(merchant + 1, "memory", token)
    with pytest.raises(NotFoundError):
        await keeping.decide("USDX", merchants={"mer_none": True})


async def test_what_a_worker_sees_is_written_in_plain_words(keeping):
    keeping.state.failing, keeping.state.error = True, "memory: nobody can be asked"
    keeping.node.faults.unavailable = True
    (own,) = await keeping.listed()
    assert (own.healthy, own.set_aside) == (False, "nobody answers")
    async with keeping.db.autocommit() as conn:
        state = (await states.load(conn))["memory"]
    assert (state.error, state.failing_since is not None, state.problem) == ("memory: nobody can be asked", True, None)
    keeping.node._calls += 60
    keeping.gateway.connections.setups["memory"]
    await keeping.listed()
    async with keeping.db.transaction() as conn:
        await conn.execute(insert(ChainEndpoint).values(
            endpoint_id="end_gone", chain="memory", origin="file", name="gone", state="in_use",
            created_at=keeping.gateway.clock.now(), changed_at=keeping.gateway.clock.now(),
        ))  # fmt: skip
    assert [one.name for one in await keeping.listed()] == ["memory"]


async def test_two_workers_check_one_request_once(keeping):
    keeping.second()
    await keeping.add()
    other = ChainKeeper(keeping.gateway, [keeping.state])
    assert [await keeping.keeper.ask(), await other.ask()] == [True, False]
    async with keeping.db.autocommit() as conn:
        found = (await conn.execute(select(ChainEndpoint.state).where(ChainEndpoint.origin == "added"))).scalars().all()
        assert found == ["in_use"]
        assert (await conn.execute(select(ChainToken.id))).all() == []


async def test_a_plugin_that_stumbles_over_what_was_added_refuses_it_without_its_words(keeping):
    second = keeping.second()
    second.faults.crash = ZeroDivisionError("memory://user:s3cr3t")
    refused = await keeping.asked(await keeping.add())
    assert refused.reason == "It cannot be asked: its plugin failed with ZeroDivisionError."
    keeping.node.faults.crash = ZeroDivisionError("s3cr3t")
    refused = await keeping.token()
    assert (refused.state, refused.reason) == ("refused", "The plugin of memory failed with ZeroDivisionError.")


async def test_a_worker_that_is_not_connected_says_so_where_no_other_one_watches(keeping):
    await keeping.keeper.report()
    now = keeping.gateway.clock.now()
    for age_s, problem in ((10, None), (60, "its log says why")):
        async with keeping.db.transaction() as conn:
            told = states.ChainStateRow(
                chain="memory", problem="its log says why", seen_at=now + timedelta(seconds=age_s)
            )
            await states.save_problem(conn, told)
            assert (await states.load(conn))["memory"].problem == problem
