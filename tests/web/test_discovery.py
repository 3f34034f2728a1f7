"""Public discovery: what can be paid with."""

from __future__ import annotations

from tests.support.web import refused


async def test_every_chain_is_listed_whatever_its_mode(client):
    answer = (await client.get("/api/public/chains")).json()
    assert answer["success"] is True
    assert [chain["chain"] for chain in answer["chains"]] == ["memory", "pretend", "idle"]
    assert answer["chains"][0] == {
        "chain": "memory",
        "name": "Memory (memory)",
        "nativeSymbol": "MEM",
        "chainIdNum": None,
        "isEvm": False,
        "defaultConfirmations": 3,
    }


async def test_each_chain_has_its_own_coin_and_tokens(client, gateway):
    everything = (await client.get("/api/public/tokens")).json()["tokens"]
    assert len(everything) == 9
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


async def test_tokens_of_an_unknown_chain_are_refused_in_the_specifications_words(client):
    for query in ("chain=nowhere", "chain=", "chain=Memory"):
        body = refused(await client.get(f"/api/public/tokens?{query}"), 400, "UNSUPPORTED_CHAIN")
        assert body["error"] == "Unsupported chain"
