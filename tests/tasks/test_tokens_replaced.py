"""A token's symbol is given to another contract only where nothing is lost by it."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from cambist.services.accounting.ledger import asset_key
from cambist.testing.memory.family import named_address

from .test_chain_keeping import EURX, keeping

__all__ = ["keeping"]

pytestmark = pytest.mark.slow


async def test_a_symbol_is_not_replaced_while_money_of_its_token_is_being_confirmed(keeping):
    node = keeping.node
    other = replace(EURX, contract=named_address("deployed/EURX again"))
    node.contracts |= {EURX.contract: EURX, other.contract: other}
    await keeping.token()
    await keeping.keeper.follow()
    # What comes for a payment in another token is no part of it, and the merchant's all the same.
    address = await keeping.shop.payment(node, "USDX", 5)
    await keeping.decide("EURX", enabled=False)
    node.transfer(EURX, address, 4)
    node.mine()
    await keeping.watcher.poll()
    assert "being confirmed" in (await keeping.token(other.contract, replaces=True)).reason
    # And where a scan that is just being stored brings it, that is waited for.
    arrives = "UPDATE deposits SET status = $1"
    async with keeping.db.transaction() as conn:
        await conn.exec_driver_sql(arrives, ("orphaned",))
    async with keeping.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE chain_cursors SET updated_at = updated_at")
        asking = asyncio.create_task(keeping.token(other.contract, replaces=True))
        waits = "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid <> pg_backend_pid()"
        async with asyncio.timeout(60):
            while not (await conn.exec_driver_sql(waits)).scalar_one():  # noqa: ASYNC110  the server knows
                await asyncio.sleep(0.02)
        await conn.exec_driver_sql(arrives, ("detected",))
    assert "being confirmed" in (await asking).reason
    node.mine(5)
    await keeping.shop.poll(keeping.watcher)
    assert (await keeping.token(other.contract, replaces=True)).state == "refused"
    assert (await keeping.shop.balance(asset_key("memory", EURX.contract)))["held"] == 4
