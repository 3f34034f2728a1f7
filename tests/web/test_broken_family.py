"""A family whose plugin fails hides no other family's addresses from merchants, their customers and searches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from cambist.testing.memory import MemoryFamily

ORDER = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "1", "orderId": "A-1"}


class Broken(MemoryFamily):
    """Fails with what no caller expects."""

    name = "broken"

    def derive_address(self, *_):
        raise KeyError("xpub")

    def normalize_address(self, text):
        raise IndexError(len(text))

    def address_uri(self, *_):
        raise KeyError("scheme")

    def payment_uri(self, *_):
        raise KeyError("scheme")


@pytest.fixture
def broken_too(gateway):
    """Have the broken family before the sound one, with a chain of its own."""
    registry = gateway.registry
    registry.families = {"broken": Broken(), **registry.families}
    registry.chains["broken"] = replace(registry.chains["memory"], id="broken", family="broken")


async def test_a_wallet_has_its_other_addresses(client, merchant, broken_too):
    answer = await client.get("/api/merchant/wallet/addresses", headers=merchant.key)
    assert answer.status_code == 200, answer.text
    assert [one["chains"] for one in answer.json()["addresses"]] == [["memory"]]


async def test_what_is_named_by_an_address_is_found_and_paid_in_the_sandbox(client, sandbox_merchant, broken_too):
    who = sandbox_merchant
    made = (await client.post("/api/payment", json=ORDER, headers=who.key)).json()["payment"]
    answer = await who.ask("GET", f"/api/dashboard/projects/{who.project_id}/search?q={made['depositAddress'].upper()}")
    assert [one["paymentId"] for one in answer["found"]] == [made["paymentId"]]
    deposit = {"address": made["depositAddress"], "amount": "1", "confirmations": 20}
    answer = await client.post("/api/sandbox/deposit", json=deposit, headers=who.key)
    assert answer.status_code == 200, answer.text


async def test_an_accounts_page_shows_an_address_whose_link_cannot_be_made(client, gateway, merchant, monkeypatch):
    made = await client.post("/api/account", json={"externalId": "carol", "chains": ["memory"]}, headers=merchant.key)
    account = made.json()["account"]
    monkeypatch.setattr(gateway.registry.families["memory"], "address_uri", Broken().address_uri)
    public_id = account["depositUrl"].rpartition("/")[2]
    answer = await client.get(f"/api/public/account/{public_id}")
    (shown,) = answer.json()["account"]["addresses"]
    assert shown["uri"] == shown["address"] == account["addresses"][0]["address"]
    page = await client.get(account["depositUrl"].replace("http://gateway.example", ""))
    assert page.status_code == 200, page.text


@pytest.mark.parametrize("said", [KeyError("scheme"), None, b"memory:", "", "memory:\n", "m" * 10_000])
async def test_a_payments_page_shows_an_address_whose_link_cannot_be_made(client, gateway, merchant, monkeypatch, said):
    """What a camera cannot read is no link, either."""
    made = await client.post("/api/payment", json=ORDER, headers=merchant.key)

    def payment_uri(*_):
        if isinstance(said, Exception):
            raise said
        return said

    monkeypatch.setattr(gateway.registry.families["memory"], "payment_uri", payment_uri)
    page = await client.get(made.json()["checkoutUrl"].replace("http://gateway.example", ""))
    assert page.status_code == 200, page.text
    assert "Scan the address, then enter the amount" in page.text


@pytest.mark.parametrize("made", [KeyError("xpub"), None, b"address"])
async def test_an_address_that_cannot_be_made_is_an_outage_of_its_own_chain(
    client, gateway, merchant, monkeypatch, made
):
    """What was made before is told all the same."""
    headers = {**merchant.key, "Idempotency-Key": "order-1"}
    before = (await client.post("/api/payment", json=ORDER, headers=headers)).json()["payment"]

    def derive_address(*_):
        if isinstance(made, Exception):
            raise made
        return made

    monkeypatch.setattr(gateway.registry.families["memory"], "derive_address", derive_address)
    again = await client.post("/api/payment", json=ORDER, headers=headers)
    assert again.json()["payment"]["paymentId"] == before["paymentId"]
    account = {"externalId": "carol", "chains": ["memory"]}
    for path, body in (("/api/payment", ORDER), ("/api/account", account)):
        answer = await client.post(path, json=body, headers=merchant.key)
        assert (answer.status_code, answer.json()["code"]) == (503, "CHAIN_UNAVAILABLE"), answer.text
