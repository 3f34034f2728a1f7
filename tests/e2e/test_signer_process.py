"""The signer as a process of its own: it alone has the passphrase, and keeps to its caps whoever asks."""

from __future__ import annotations

import asyncio
import re
import signal

import psutil
import pytest

from tests.support.descendants import everything_below, still_there
from tests.support.gateway import GatewayProcess, until
from tests.support.secrets import memory

# The processes are the program itself, which takes long to start. One signs for TRON in the stories of going_out.
pytestmark = pytest.mark.parametrize("network", ["anvil"], indirect=True, scope="module")

PASSPHRASE = "a passphrase that is in no other process"
CAP = 30


@pytest.fixture(scope="module")
async def words(tmp_path_factory, network):
    """Make a keystore as the operator does; give its folder, and the words it is made of."""
    folder = tmp_path_factory.mktemp("gateway")
    (folder / "passphrase").write_text(PASSPHRASE)
    process = GatewayProcess(folder, "", by_exec=True)
    code, output = await process.run("keys", "init", "keystore.json", "--passphrase-file", "passphrase")
    assert code == 0, output
    (folder / "passphrase").unlink()
    lines = [line for line in output.splitlines() if line.startswith("  ")]
    return folder, " ".join(re.findall(r"[0-9]+ ([a-z]+)", " ".join(lines)))


@pytest.fixture(scope="module")
def has_another():
    return False


@pytest.fixture(scope="module")
def more_settings(usdx):
    """Have the signer let few tokens out within an hour."""
    return [
        "[keys]", 'keystore = "keystore.json"', 'passphrase = { env = "STORY_PASSPHRASE" }',
        "[signer]", "separate = true", f'hourly_caps = {{ "{usdx.chain}/{usdx.symbol}" = "{CAP}" }}',
    ]  # fmt: skip


@pytest.fixture(scope="module")
async def gateway(words, settings):
    folder, _ = words
    async with GatewayProcess(folder, settings, {"STORY_PASSPHRASE": PASSPHRASE}, by_exec=True) as gateway:
        yield gateway
        below = everything_below(gateway.pid)
        assert len(below) >= 3  # web, worker and signer
        assert await gateway.stop(signal.SIGINT) == 0
        assert not still_there(below)


@pytest.fixture(scope="module")
async def merchant(merchant, station, blocks):
    """Let the chain run, and the gas station pay."""
    return merchant


async def test_a_payout_is_signed_by_a_process_that_alone_knows_passphrase_and_words(
    gateway, words, merchant, receiver, customer, network, usdx, onlooker
):
    payment = await merchant.pay(usdx, 60)
    await customer.pay(payment["depositAddress"], usdx, 60)
    await merchant.until(payment, "paid", seconds=180)
    to_address = network.stranger()
    payout = await merchant.pay_out(usdx, 20, to_address)
    await merchant.completed(payout)
    await receiver.wait(payout["payoutId"], "payout.completed")
    assert await onlooker.holds(to_address, usdx, 20)
    assert await onlooker.holds(payment["depositAddress"], usdx, 0)

    mnemonic = words[1]
    assert len(mnemonic.split()) == 24
    knows = {}
    for name in ("web", "worker", "signer"):
        process = gateway.child(name)
        in_environment = PASSPHRASE in process.environ().values()
        knows[name] = in_environment, find_in_memory(process, [PASSPHRASE, mnemonic])
    assert knows["web"] == knows["worker"] == (False, {PASSPHRASE: False, mnemonic: False})
    assert knows["signer"] == (True, {PASSPHRASE: True, mnemonic: True})
    assert PASSPHRASE not in gateway.log.read_text()
    assert mnemonic not in gateway.log.read_text()


async def test_what_is_above_the_hourly_cap_waits_and_says_why(gateway, merchant, network, usdx, onlooker):
    large, small = network.stranger(), network.stranger()
    waiting = await merchant.pay_out(usdx, 20, large)
    path = f"/api/merchant/wallet/payouts/{waiting['payoutId']}"

    async def held() -> dict | None:
        found: dict = (await merchant.get(path))["payout"]
        return found if found["waitsFor"] and "cap" in found["waitsFor"].lower() else None

    found = await until(held)
    assert found["status"] == "processing"
    await merchant.completed(await merchant.pay_out(usdx, 5, small))
    assert await onlooker.holds(large, usdx, 0)
    assert await onlooker.holds(small, usdx, 5)
    assert await merchant.balance(usdx) == {"available": "15", "pending": "20"}
    assert (await held() or {})["payoutId"] == waiting["payoutId"]
    await gateway.reconcile()


async def test_a_signer_that_dies_is_started_again_and_remembers_its_caps(gateway, merchant, network, usdx, onlooker):
    before = gateway.child("signer")
    before.kill()
    to_address, other = network.stranger(), network.stranger()
    payout = await merchant.pay_out(usdx, 5, to_address)
    above = await merchant.pay_out(usdx, 1, other)
    await merchant.completed(payout)
    assert gateway.child("signer").pid != before.pid
    assert await onlooker.holds(to_address, usdx, 5)
    await asyncio.sleep(1)
    found = (await merchant.get(f"/api/merchant/wallet/payouts/{above['payoutId']}"))["payout"]
    assert (found["status"], found["txHash"]) == ("processing", None)
    assert await onlooker.holds(other, usdx, 0)
    await gateway.reconcile()


def find_in_memory(process: psutil.Process, texts: list[str]) -> dict[str, bool]:
    """Say which texts can be read in a process's memory."""
    found = dict.fromkeys(texts, False)
    for content in memory(process):
        for text in texts:
            found[text] |= text.encode() in content
    return found
