"""The engine on a chain that signs public keys: it tells each step the key that will sign it, from any signer."""

from __future__ import annotations

from contextlib import AsyncExitStack

import pytest
from coincurve import PublicKey
from msgspec import structs

from cambist.services.sending.engine import Engine
from cambist.signer.protocol import SignerUnavailableError
from cambist.signer.remote import RemoteSigner
from cambist.signer.server import SignerServer
from cambist.testing.memory import MemoryKeyedChain
from cambist.testing.memory.keys import key_id
from cambist.testing.memory.payload import KeyedPayload, open_raw
from tests.support.payment_env import registry
from tests.support.plays import play
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

AMOUNT = 5_000_000


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    known = registry()
    chain = MemoryKeyedChain(known.chains["memory"])
    async with Treasury(db, clock, ids, tmp_path, chain=chain, chains=known) as treasury:
        await play(treasury, Treasury.open_paid, ("USDX", 100 * AMOUNT))
        yield treasury
        await treasury.check_books()


async def raw_of(treasury: Treasury, tx_id: str) -> bytes:
    async with treasury.db.autocommit() as conn:
        return (await conn.exec_driver_sql("SELECT raw FROM outbound_txs WHERE tx_id = $1", (tx_id,))).scalar_one()


async def test_what_is_collected_and_paid_names_the_key_of_each_sender(treasury):
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await treasury.work(treasury.engine())
    paid = await treasury.payout(payout_id)
    assert paid.status == "completed"
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    payload, signer = open_raw(await raw_of(treasury, paid.tx_id))
    assert isinstance(payload, KeyedPayload)
    assert key_id(PublicKey(bytes.fromhex(payload.public_key))) == signer
    async with treasury.db.autocommit() as conn:
        raws = (await conn.exec_driver_sql("SELECT raw FROM outbound_txs")).scalars().all()
    keys = {open_raw(raw)[0].public_key for raw in raws}
    assert len(keys) == 3, "the deposit's address, the gas station, and the wallet"


async def test_what_is_stuck_is_replaced_with_its_senders_key(treasury):
    engine = await treasury.ready()
    to_address = await treasury.stranger(1)
    payout_id = await treasury.pay_out("USDX", AMOUNT, to_address)
    await engine.tick()
    treasury.chain.fees.base_price *= 10
    await treasury.work(engine, rounds=2, until="enough")
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert (await treasury.payout(payout_id)).status == "completed"
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
    assert treasury.alerts["replaced"] >= 1


async def test_a_signer_in_its_own_process_tells_the_same_keys(treasury, tmp_path):
    engine, to_address = treasury.engine(), await treasury.stranger(1)
    async with AsyncExitStack() as stack:
        path = tmp_path / "s.sock"
        await stack.enter_async_context(SignerServer(treasury.signer).listen(path))
        remote = RemoteSigner(path, timeout_s=20)
        stack.push_async_callback(remote.aclose)
        engine = Engine(structs.replace(engine.context, signer=remote), treasury.keys)
        await treasury.pay_out("USDX", AMOUNT, to_address)
        await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT


async def test_a_signer_that_is_away_only_makes_a_payout_wait(treasury, tmp_path):
    engine, to_address = await treasury.ready(), await treasury.stranger(1)
    away = Engine(structs.replace(engine.context, signer=RemoteSigner(tmp_path / "nobody.sock")), treasury.keys)
    await treasury.pay_out("USDX", AMOUNT, to_address)
    with pytest.raises(SignerUnavailableError):
        await treasury.work(away, rounds=3, until="enough")
    assert await treasury.on_chain(to_address, "USDX") == 0
    treasury.clock.advance(120)
    await treasury.work(engine)
    assert await treasury.on_chain(to_address, "USDX") == AMOUNT
