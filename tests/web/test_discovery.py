"""Public discovery: what can be paid with."""

from __future__ import annotations

from tests.support.web import refused


async def test_live_projects_are_told_of_chains_that_are_read_and_of_those_that_are_always_there(client):
    answer = (await client.get("/api/public/chains")).json()
    assert answer["success"] is True
    assert [chain["chain"] for chain in answer["chains"]] == ["memory", "idle"]
    assert (await client.get("/api/public/chains?mode=live")).json() == answer
    assert answer["chains"][0] == {
        "chain": "memory",
        "name": "Memory (memory)",
        "nativeSymbol": "MEM",
        "chainIdNum": None,
        "isEvm": False,
        "defaultConfirmations": 3,
        "hasTags": True,
    }


async def test_sandbox_projects_are_told_of_simulated_chains_too_which_are_flagged(client):
    answer = (await client.get("/api/public/chains?mode=sandbox")).json()
    flags = {chain["chain"]: chain["sandboxOnly"] for chain in answer["chains"]}
    assert flags == {"memory": False, "pretend": True, "idle": False}
    refused(await client.get("/api/public/tokens?chain=pretend"), 400, "UNSUPPORTED_CHAIN")
    some = (await client.get("/api/public/tokens?chain=pretend&mode=sandbox")).json()["tokens"]
    assert [token["symbol"] for token in some] == ["MEM", "USDX", "DAIX"]
    answer = await client.get("/api/public/chains?mode=test")
    refused(answer, 400, "VALIDATION_ERROR", "mode")
    assert answer.json()["error"] == 'mode must be one of "live", "sandbox"'


async def test_an_address_is_given_out_only_for_chains_that_are_read(client, merchant):
    async def told():
        answer = await client.get("/api/merchant/wallet/addresses", headers=merchant.key)
        return [chain for one in answer.json()["addresses"] for chain in one["chains"]]

    async def paid(chain):
        body = {"chain": chain, "token": "USDX", "pricingMode": "direct_crypto", "amount": "1"}
        return await client.post("/api/payment", json=body, headers=merchant.key)

    assert await told() == ["memory"]
    for chain in ("pretend", "idle"):
        refused(await paid(chain), 503, "CHAIN_UNAVAILABLE")
    await merchant.add_project(mode="sandbox")
    assert await told() == ["memory", "pretend", "idle"]
    assert (await paid("pretend")).status_code == 201


async def test_any_page_in_a_browser_may_read_what_anybody_may(client, merchant):
    for path in ("chains", "tokens", "cpt-calculator-config", "tokens?chain=nowhere"):
        answer = await client.get(f"/api/public/{path}", headers={"Origin": "https://shop.example"})
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in answer.headers
    preflight = await client.options("/api/public/chains", headers={"Origin": "https://shop.example"})
    assert (preflight.status_code, preflight.headers["access-control-allow-headers"]) == (204, "*")
    for path, headers in (("/api/payment", merchant.key), ("/api/payment/public/pub_x", {}), ("/health/live", {})):
        assert "access-control-allow-origin" not in (await client.get(path, headers=headers)).headers


async def test_each_chain_has_its_own_coin_and_tokens(client, gateway):
    everything = (await client.get("/api/public/tokens?mode=sandbox")).json()["tokens"]
    assert len(everything) == 9
    assert len((await client.get("/api/public/tokens")).json()["tokens"]) == 6
    some = (await client.get("/api/public/tokens?chain=memory")).json()["tokens"]
    assert [token["symbol"] for token in some] == ["MEM", "USDX", "DAIX"]
    assert some[0] == {
        "chain": "memory",
        "symbol": "MEM",
        "contractAddress": None,
        "decimals": 18,
        "isNative": True,
        "label": "Memory coin",
    }
    assert some[1]["contractAddress"] == gateway.registry.chains["memory"].token("USDX").contract


async def test_where_less_than_some_amount_does_not_arrive_tokens_and_coins_tell_it(client, merchant):
    tokens = (await client.get("/api/public/tokens?mode=sandbox")).json()["tokens"]
    assert [(one["chain"], one["symbol"], one["leastAmount"]) for one in tokens if "leastAmount" in one] == [
        ("idle", "MEM", "0.5")
    ]
    coins = (await client.get("/api/merchant/wallet/coins", headers=merchant.key)).json()["coins"]
    assert [(one["chain"], one["token"], one["leastAmount"]) for one in coins if "leastAmount" in one] == [
        ("idle", "MEM", "0.5")
    ]


async def test_tokens_of_an_unknown_chain_are_refused_in_the_specifications_words(client):
    for query in ("chain=nowhere", "chain=", "chain=Memory"):
        body = refused(await client.get(f"/api/public/tokens?{query}"), 400, "UNSUPPORTED_CHAIN")
        assert body["error"] == "Unsupported chain"
