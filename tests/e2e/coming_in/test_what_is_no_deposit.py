"""What the platform sends itself is no deposit."""

from __future__ import annotations

from tests.e2e.conftest import station_address
from tests.support.secrets import keystore_of


async def test_a_top_up_from_the_gas_station_is_not_a_deposit(merchant, gateway, network, native, story_db, books):
    keystore = keystore_of(gateway.folder / "data")
    station = network.customer(keystore.private_key("live", network.coin_type, 0, 0, 0).secret)
    assert station.address == await station_address(story_db, network)
    await native.send(station.address, network.station_float)
    await network.mine()
    topped_up, paid = await merchant.pay(native, "0.1"), await merchant.pay(native, "0.2")
    await station.pay(topped_up["depositAddress"], native, "0.1")
    await native.send(paid["depositAddress"], "0.2")
    await network.mine(4)
    await merchant.until(paid, "paid")
    assert (await merchant.payment(topped_up))["receivedAmount"] == "0"
    assert await merchant.balance(native) == {"available": "0.2"}
