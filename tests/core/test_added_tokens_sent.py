"""A token that was added while running leaves the gateway only once it stands in the signer's own file."""

from __future__ import annotations

import pytest

from cambist.services.chains import sendable
from cambist.signer.local import LocalSigner
from cambist.signer.reading import Reader
from cambist.signer.store import Store
from cambist.testing.memory.family import named_address
from tests.support.payment_env import CHAINS, registry
from tests.support.treasury import Treasury

pytestmark = pytest.mark.slow

EURX = {"symbol": "EURX", "contract": named_address("eurx"), "decimals": 6, "label": "Euro"}
AMOUNT = 5_000_000


def with_eurx():
    memory = CHAINS["memory"]["chains"]["memory"]
    more = {"memory": {"chains": {**CHAINS["memory"]["chains"], "memory": {**memory, "tokens": [EURX]}}}}
    return registry({**CHAINS, **more})


@pytest.fixture
async def treasury(db, clock, ids, tmp_path):
    """Give a gateway that knows EURX by a row, as after an operator has added it."""
    async with Treasury(db, clock, ids, tmp_path, chains=with_eurx()) as treasury:
        treasury.prices.board["EURX", "usd"] = "1"
        await treasury.open()
        async with db.autocommit() as conn:
            await conn.exec_driver_sql(
                "INSERT INTO chain_tokens (token_id, chain, origin, state, contract, symbol, decimals, label,"
                " created_at, changed_at, revision) VALUES ('tkn_1', 'memory', 'added', 'enabled', $1, 'EURX', 6,"
                " 'Euro', now(), now(), 1)",
                (EURX["contract"],),
            )
        yield treasury
        await treasury.check_books()


async def start_signer(treasury, own_file):
    """Have the signer be started again with these chains in its own file, and be asked what it knows."""
    await treasury.signer.aclose()
    reader = Reader(treasury.keystore, own_file.families, own_file.chains)
    treasury.signer = LocalSigner(
        treasury.keystore, reader, rules=treasury.rules, store=Store(treasury.folder), clock=treasury.clock
    )
    treasury._stack.push_async_callback(treasury.signer.aclose)
    await sendable.ask(treasury.db, treasury.signer)


async def is_sendable(treasury):
    async with treasury.db.autocommit() as conn:
        return (await conn.exec_driver_sql("SELECT sendable FROM chain_tokens")).scalar_one()


async def collect_and_send(treasury):
    for _ in range(3):
        treasury.clock.advance(120)
        await treasury.work(treasury.engine(), rounds=4, until="enough")


async def test_it_is_received_and_sent_only_after_the_signers_own_file_has_it(treasury):
    await start_signer(treasury, registry())
    assert await is_sendable(treasury) is False
    to_address = await treasury.stranger(1)
    await treasury.receive("EURX", 4 * AMOUNT)
    payout = await treasury.pay_out("EURX", AMOUNT, to_address)
    await collect_and_send(treasury)
    waits = await treasury.payout(payout)
    assert (waits.status, waits.waits_for, await treasury.on_chain(to_address, "EURX")) == (
        "processing",
        "token_not_sendable",
        0,
    )
    assert treasury.alerts["signer_refused"] == 0, "nothing was asked of it"

    # Whatever the database says of the file, the signer goes by the file.
    async with treasury.db.autocommit() as conn:
        await conn.exec_driver_sql("UPDATE chain_tokens SET sendable = true")
    await collect_and_send(treasury)
    assert treasury.alerts["signer_refused"] >= 1
    assert (await treasury.payout(payout)).status == "processing"
    assert await treasury.on_chain(to_address, "EURX") == 0
    await start_signer(treasury, registry())
    assert await is_sendable(treasury) is False

    await start_signer(treasury, with_eurx())
    assert await is_sendable(treasury) is True
    treasury.clock.advance(120)
    await treasury.work(treasury.engine())
    assert (await treasury.payout(payout)).status == "completed"
    assert await treasury.on_chain(to_address, "EURX") == AMOUNT
