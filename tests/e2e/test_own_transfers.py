"""What the platform sends itself is no deposit."""

from __future__ import annotations


async def test_a_top_up_from_the_gas_station_is_not_a_deposit(merchant, node, story_db, books):
    async with story_db.transaction() as conn:
        gas_station = (
            await conn.exec_driver_sql("SELECT address FROM addresses WHERE purpose = 'gas' AND mode = 'live'")
        ).scalar_one()
    await node.call("anvil_setBalance", [gas_station, hex(10**18)])
    await node.call("anvil_impersonateAccount", [gas_station])
    topped_up, paid = await merchant.pay("ethereum", "ETH", "0.1"), await merchant.pay("ethereum", "ETH", "0.2")
    await node.send_native(topped_up["depositAddress"], 10**17, sender=gas_station)
    await node.send_native(paid["depositAddress"], 2 * 10**17)
    await node.mine(4)
    await merchant.until(paid, "paid")
    assert (await merchant.payment(topped_up))["receivedAmount"] == "0"
    assert await merchant.balance("ethereum", "ETH") == {"available": "0.2"}
