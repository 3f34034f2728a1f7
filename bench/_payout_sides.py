"""A merchant's main wallet on anvil that pays out: through the engine, and beside it one nonce after the other."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Self

import aiohttp
from _child import Child
from msgspec import Struct, structs

from cambist.bootstrap import Gateway, Parts, open_gateway
from cambist.domain.intents import AskedBy, IntentKind
from cambist.plugin import AddressFamily, Chain, Fee, Intent, SignedTx, Step, Token, Units
from cambist.services.accounting import ledger
from cambist.services.addresses.account_keys import fill_stock, register_gas_stations
from cambist.services.addresses.wallets import main_wallet
from cambist.services.chain_scope import ChainScope
from cambist.services.intent_handlers import intent_handlers
from cambist.services.payouts import queue
from cambist.services.payouts.queue import NewPayout
from cambist.services.platform import PlatformSettings
from cambist.services.receiving.deposits import AddressCache, Watcher
from cambist.services.sending.context import EngineContext
from cambist.services.sending.engine import Engine
from cambist.settings import AuthSettings, DatabaseSettings, KeySettings, OutboundSettings, RedisSettings, Settings
from cambist.signer import Signer
from cambist.signer.keystore import Keystore
from cambist.signer.protocol import KeyPath, SignRequest
from cambist_evm.testing import Anvil, Contract, FaultyProxy

MNEMONIC = " ".join(["test"] * 11 + ["junk"])
"""The mnemonic that everybody uses for tests: never for money."""
NATIVE = 100 * 10**18
TOKENS = 10**15
IN_FLIGHT_MAX = 5_000
REBROADCAST_S = 0.5
MINE_EVERY_S = 0.2


class Wallet(Struct, frozen=True):
    """A merchant's main wallet, and where its key is."""

    merchant_pk: int
    project_pk: int
    address: str
    path: KeyPath


class Done(Struct, frozen=True):
    """What was asked for, and the amount that each address must have on the chain."""

    seconds: float
    amounts: dict[str, int]


class DistantNode:
    """A proxy that delays each request to a node by the same time. Requests do not wait for each other."""

    def __init__(self, url: str, latency_s: float) -> None:
        self._proxy = FaultyProxy(url)
        self._proxy.latency_s = latency_s

    async def __aenter__(self) -> Self:
        await self._proxy.__aenter__()
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._proxy.__aexit__(*error)

    def address(self) -> str:
        """Return where."""
        return self._proxy.url


class Payouts:
    """One node, one gateway's parts as a worker has them, and wallets full of tokens."""

    def __init__(self, database_url: str, redis_url: str, latency_s: float) -> None:
        self._database_url, self._redis_url, self._latency_s = database_url, redis_url, latency_s
        self._random = Random(1)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            await self._stack.aclose()
            raise
        return self

    async def _open(self) -> None:
        folder = self._stack.enter_context(TemporaryDirectory(prefix="cambist-bench-", ignore_cleanup_errors=True))
        self.node = await self._stack.enter_async_context(Anvil(chain_id=1, automine=False))
        self._url = self.node.url
        if self._latency_s:
            distant = self._stack.enter_context(Child("_payout_sides:DistantNode", self.node.url, self._latency_s))
            self._url = distant.call("address")
        self._session = await self._stack.enter_async_context(aiohttp.ClientSession())
        self.contract: Contract = await self.node.deploy("TestToken", "USDX", 6)
        parts = Parts(keystore=Keystore(MNEMONIC))
        opening = open_gateway(self._settings(Path(folder)), role="worker", parts=parts)
        self.gateway: Gateway = await self._stack.enter_async_context(opening)
        assert self.gateway.signer is not None
        self.signer: Signer = self.gateway.signer
        self.chain: Chain = self.gateway.chains["ethereum"]
        self.family: AddressFamily = self.gateway.registry.families[self.chain.info.family]
        token = self.chain.info.token("USDX")
        assert token is not None
        self.token: Token = token
        await self._open_books()
        self.ours, self.other = await self._merchant(1), await self._merchant(2)
        await self._fund()

    async def __aexit__(self, *_: object) -> None:
        await self._stack.aclose()

    def _settings(self, folder: Path) -> Settings:
        token = {"symbol": "USDX", "contract": self.contract.address, "decimals": 6, "label": "Example dollar"}
        # Anvil traces a full block for seconds, and nothing here is paid by contracts.
        network = {"rpc_urls": [self._url], "confirmations": 1, "trace": "off", "tokens": [token]}
        return Settings(
            data_dir=folder,
            database=DatabaseSettings(url=self._database_url),
            redis=RedisSettings(url=self._redis_url),
            keys=KeySettings(application_key="00" * 32, stock=3),
            auth=AuthSettings(jwt_secret="a secret for benchmarks, long enough"),
            outbound=OutboundSettings(in_flight_max=IN_FLIGHT_MAX, rebroadcast_s=REBROADCAST_S),
            plugins={"evm": {"chains": {"ethereum": network}}},
        )

    async def _open_books(self) -> None:
        """Do what the worker does before the first payout: keys, the gas station, and a first poll of the chain."""
        gateway = self.gateway
        coin_types = {family.coin_type for family in gateway.registry.families.values()}
        await fill_stock(gateway.db, self.signer, gateway.secrets, coin_types=coin_types, stock=3)
        async with gateway.db.transaction() as conn:
            await register_gas_stations(conn, gateway.keys, gateway.registry.families.values())
        self.watcher = Watcher(
            db=gateway.db,
            chain=self.chain,
            family=self.family,
            address_cache=AddressCache(gateway.db, self.family, "live"),
            scope=0,
            mode="live",
            clock=gateway.clock,
            ids=gateway.ids,
            hints=gateway.hints,
        )
        self.engine = Engine(
            EngineContext(
                db=gateway.db,
                chain=self.chain,
                family=self.family,
                signer=self.signer,
                pauses=gateway.pauses,
                rates=gateway.rates,
                clock=gateway.clock,
                ids=gateway.ids,
                handlers=intent_handlers(gateway.ids),
                settings=gateway.settings.outbound,
                chain_scope=ChainScope(info=self.chain.info, scope=0, mode="live"),
                alerts=Counter(),
            ),
            gateway.keys,
        )
        await self._mine(3)

    async def _merchant(self, number: int) -> Wallet:
        gateway = self.gateway
        async with gateway.db.transaction() as conn:
            row = await conn.exec_driver_sql(
                "INSERT INTO merchants (merchant_id, email, name)"
                " VALUES ('mer_' || $1::bigint, $1 || '@example.com', 'Shop') RETURNING id",
                (number,),
            )
            merchant = row.scalar_one()
            await conn.exec_driver_sql(
                "UPDATE account_keys SET merchant_pk = $1 WHERE account_index = $2", (merchant, number)
            )
            row = await conn.exec_driver_sql(
                "INSERT INTO projects (project_id, merchant_pk, name, mode, payment_webhook_url)"
                " VALUES ('prj_' || $1::bigint, $2, 'Shop', 'live', 'http://127.0.0.1:1/hook') RETURNING id",
                (number, merchant),
            )
            project = row.scalar_one()
            wallet = await main_wallet(conn, gateway.keys, self.family, merchant, "live")
        return Wallet(merchant, project, wallet.address, KeyPath(account=number, change=1, index=0))

    async def _fund(self) -> None:
        """Bring tokens and gas to the wallets, and make the tokens that arrived spendable."""
        await self._mine(1)
        for wallet in (self.ours, self.other):
            await self.contract.send("mint", wallet.address, TOKENS)
            await self.node.send_native(wallet.address, NATIVE)
        await self._mine(4)
        held, available = (
            ledger.Account(self.ours.merchant_pk, ledger.asset_key("ethereum", self.token.contract), purpose)
            for purpose in (ledger.Purpose.HELD, ledger.Purpose.AVAILABLE)
        )
        # The node's first account is the gas station: what it sent is the platform's, and pays the fees.
        asset = ledger.asset_key("ethereum", None)
        gas = ledger.Account(self.ours.merchant_pk, asset, ledger.Purpose.FLOAT_WALLET)
        station = ledger.Account(ledger.PLATFORM, asset, ledger.Purpose.CUSTODY_GAS)
        movements = [ledger.Movement(held, available, Units(TOKENS)), ledger.Movement(gas, station, Units(NATIVE))]
        posting = ledger.Posting(mode="live", kind="benchmark", reference="released", movements=movements)
        async with self.gateway.db.transaction() as conn:
            await ledger.post(conn, "live", [posting])

    async def _mine(self, blocks: int = 1) -> None:
        await self.node.mine(blocks)
        while (await self.watcher.poll()).behind:
            pass

    def _amounts(self, count: int) -> dict[str, int]:
        """Return new addresses, and the amount that each is to receive."""
        return {
            self.family.normalize_address(f"0x{self._random.getrandbits(160):040x}"): self._random.randrange(1, 1_000)
            for _ in range(count)
        }

    async def ask(self, count: int) -> dict[str, int]:
        """Queue payouts, as the API does with a batch."""
        amounts, gateway = self._amounts(count), self.gateway
        context = queue.PayoutContext(
            registry=gateway.registry, keys=gateway.keys, clock=gateway.clock, ids=gateway.ids
        )
        new = [
            NewPayout(
                kind=IntentKind.PAYOUT,
                payout_id=gateway.ids.new("po"),
                project_pk=self.ours.project_pk,
                merchant_pk=self.ours.merchant_pk,
                mode="live",
                chain=self.chain.info,
                token=self.token,
                to_address=address,
                units=Units(units),
                asked_by=AskedBy.KEY,
            )
            for address, units in amounts.items()
        ]
        for first in range(0, count, 100):
            async with gateway.db.transaction() as conn:
                await queue.debit_and_queue(conn, context, PlatformSettings(), new[first : first + 100])
        return amounts

    async def through_engine(self, count: int) -> Done:
        """Send until the last one is handed to the node. Asking for them is not counted: it was done before."""
        amounts = await self.ask(count)
        started = time.perf_counter()
        await self._until_sent()
        return Done(time.perf_counter() - started, amounts)

    async def with_drops(self, count: int, share: float) -> Done:
        """Send while blocks are mined and the node forgets some, until every one of them is in a block."""
        amounts = await self.ask(count)
        expected = await self._used(self.ours, "latest") + count
        started = time.perf_counter()
        await self._until_sent()
        async with self.gateway.db.transaction() as conn:
            rows = await conn.exec_driver_sql("SELECT tx_id FROM outbound_txs WHERE state = 'sent' ORDER BY id")
            waiting = list(rows.scalars())
        for tx_id in self._random.sample(waiting, max(1, round(count * share))):
            await self.node.call("anvil_dropTransaction", [tx_id])
        while await self._used(self.ours, "latest") < expected:
            await self._mine()
            await self.engine.tick()
            await asyncio.sleep(MINE_EVERY_S / 10)
        return Done(time.perf_counter() - started, amounts)

    async def _until_sent(self) -> None:
        while (await self.engine.tick()).more or await self._count("state = 'waiting'"):
            pass

    async def finish(self) -> None:
        """Mine, and let the engine finish what it sent."""
        while await self._count("state IN ('waiting', 'sending')"):
            await self._mine()
            while (await self.engine.tick()).more:
                pass

    async def _count(self, what: str) -> int:
        async with self.gateway.db.transaction() as conn:
            found = await conn.exec_driver_sql(f"SELECT count(*) FROM outbound_intents WHERE {what}")  # noqa: S608  its own
            count: int = found.scalar_one()
        return count

    async def one_by_one(self, count: int) -> Done:
        """Ask the node for the nonce, sign, send, and only then do the next; with the same signer and encoder."""
        amounts = self._amounts(count)
        fee = structs.replace(await self._fee(), limit=100_000)
        started = time.perf_counter()
        for address, units in amounts.items():
            nonce = await self._used(self.other, "pending")
            step = Step(sender=self.other.address, to_address=address, token=self.token, amount=Units(units), fee=fee)
            (unsigned,) = await self.chain.prepare([(step, nonce)])
            (reply,) = await self.signer.sign([self._request(unsigned.payload, address)])
            assert reply.signature is not None, reply
            signed: SignedTx = self.family.seal(unsigned, reply.signature)
            await self._call("eth_sendRawTransaction", "0x" + signed.raw.hex())
        return Done(time.perf_counter() - started, amounts)

    async def _fee(self) -> Fee:
        address = next(iter(self._amounts(1)))
        intent = Intent(source=self.other.address, to_address=address, token=self.token, amount=Units(1))
        (plan,) = await self.chain.plan([intent], sponsor=None)
        assert plan.step is not None, plan.refused
        return plan.step.fee

    def _request(self, payload: bytes, to_address: str) -> SignRequest:
        return SignRequest(
            mode="live", chain="ethereum", payload=payload, path=self.other.path, purpose="payout",
            reference=f"other:{to_address}", asked_by="key", own=(self.other.path,),
        )  # fmt: skip

    async def _used(self, wallet: Wallet, tag: str) -> int:
        return int(await self._call("eth_getTransactionCount", wallet.address, tag), 16)

    async def _call(self, method: str, *params: str) -> str:
        request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        async with self._session.post(self._url, json=request) as response:
            result: str = (await response.json())["result"]
        return result

    async def check(self, amounts: dict[str, int]) -> None:
        """Every address has exactly its amount, every nonce is used, every payout is completed."""
        wanted = list(amounts)
        held: list[int] = []
        for first in range(0, len(wanted), 500):
            held += await self.chain.balances([(address, self.token) for address in wanted[first : first + 500]])
        assert held == list(amounts.values())
        async with self.gateway.db.transaction() as conn:
            row = (
                await conn.exec_driver_sql(
                    "SELECT count(*) AS payouts, count(*) FILTER (WHERE status = 'completed') AS completed, (SELECT"
                    " count(*) FROM outbound_txs) AS txs, (SELECT count(*) FROM outbound_slots WHERE state <> 'done')"
                    " AS lost, (SELECT max(sequence) + 1 FROM outbound_slots) AS nonces FROM payouts"
                )
            ).one()
        assert (row.completed, row.txs, row.nonces, row.lost) == (row.payouts, row.payouts, row.payouts, 0), row
        assert await self._used(self.ours, "latest") == row.payouts
