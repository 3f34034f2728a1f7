"""Providers of swaps that are good, slow, broken or hostile, and operators who change their minds meanwhile."""

from __future__ import annotations

import asyncio

import pytest
from msgspec import structs
from sqlalchemy import event

from cambist.plugin import ExchangeRefusedError, ProviderUnavailableError
from cambist.services.exchanges import execute
from cambist.services.exchanges.offers import CODES
from tests.support.exchange_offers import (
    ADMIN,
    HERE,
    ONE,
    Meanwhile,
    Offering,
    Slow,
    asked,
    fund,
    made_rich,
    open_with_exchanges,
    provided,
    put,
    stored,
    times,
)
from tests.support.fragile import Fragile, FragileDatabase, KilledError, Life
from tests.support.web import refused


@pytest.fixture
def opening():
    return open_with_exchanges


@pytest.fixture
async def rich(gateway, merchant):
    return await made_rich(gateway, merchant)


@pytest.fixture
def ask(client, merchant):
    async def ask(path="swap/quote", **fields):
        return await asked(client, merchant.key, path, fields)

    return ask


async def nothing_moved(gateway):
    return not await stored(gateway, "SELECT id FROM exchanges") and not await stored(
        gateway, "SELECT key FROM idempotency_keys"
    )


def raising(error):
    def said(quote, request):
        raise error

    return said


def saying(**wrong):
    return lambda quote, _: structs.replace(quote, **wrong)


GOOD = Offering("good", times(1))


async def test_the_best_offer_wins_and_the_answer_says_whose_it_was(client, rich, ask):
    provided(client, Offering("low", times(0.99)), Offering("high", times(1.01)), GOOD)
    quote = (await ask()).json()["quote"]
    assert (quote["provider"], quote["dstAmount"]) == ("high", "2.02")
    made = (await ask("swap/execute")).json()
    assert (made["quote"]["provider"], made["exchange"]["provider"]) == ("high", "high")
    assert made["exchange"]["destAmountMin"] == made["quote"]["dstAmountMin"] == "1.9998"


async def test_providers_are_asked_for_what_the_merchant_wants_and_to_the_own_wallet(client, rich, ask):
    one = Offering("one", times(1))
    provided(client, one)
    made = (await ask("swap/execute", slippage=0.25)).json()
    (request,) = one.asked
    assert (request.sells.token.symbol, request.buys.token.symbol, request.units) == ("MEM", "DAIX", ONE)
    assert (request.slippage_bps, request.fee_bps, request.fee_recipient) == (25, 0, None)
    assert request.sender == request.recipient == made["exchange"]["recipient"]


HOSTILE = {
    "nothing": saying(units=0, units_min=0),
    "less than nothing": saying(units=-5, units_min=-6),
    "more than there is": saying(units=10**61),
    "a least above the quote": lambda quote, _: structs.replace(quote, units_min=quote.units + 1),
    "a least of one": saying(units_min=1),
    "fractions": saying(units=1.5, units_min=1.4),
    "words": saying(units="a lot"),
    "no quote": lambda *_: None,
    "a deadline beyond all time": saying(fill_deadline=10**30),
    "a deadline before all time": saying(fill_deadline=-(10**30)),
    "a fill of centuries": saying(fill_s=10**12),
    "fees of less than nothing": lambda quote, _: structs.replace(
        quote, fees=[structs.replace(fee, units=-1) for fee in quote.fees]
    ),
    "a bug": raising(ZeroDivisionError("division by zero")),
    "an outage": raising(ProviderUnavailableError("down")),
}


@pytest.mark.parametrize("said", HOSTILE.values(), ids=HOSTILE)
async def test_a_provider_that_makes_no_sense_is_as_good_as_away_and_hurts_no_other(client, rich, ask, said):
    provided(client, Offering("bad", said))
    refused(await ask(), 503, "EXCHANGE_UNAVAILABLE")
    refused(await ask("swap/execute"), 503, "EXCHANGE_UNAVAILABLE")
    provided(client, Offering("bad", said), GOOD)
    assert (await ask()).json()["quote"]["provider"] == "good"


async def pairs(client, headers, chain="memory"):
    answer = await client.get(f"{HERE}/pairs?srcChain={chain}&srcToken=MEM", headers=headers)
    assert answer.status_code == 200, answer.text
    return {(one["kind"], one["destChain"], one["destToken"]) for one in answer.json()["pairs"]}


async def test_a_token_is_exchanged_for_what_a_provider_may_be_asked_for(client, merchant):
    swaps = {("swap", "memory", token) for token in ("USDX", "DAIX")}
    bridges = {("bridge", "other", token) for token in ("MEM", "USDX", "DAIX")}
    assert await pairs(client, merchant.key) == swaps | bridges
    assert await pairs(client, merchant.key, "plain") == set(), "it runs no contracts"
    await put(client, swapEnabled=False)
    assert await pairs(client, merchant.key) == bridges
    await put(client, swapEnabled=True, providers={"fair-bridge": False})
    assert await pairs(client, merchant.key) == swaps
    await merchant.add_project(mode="sandbox")
    assert {chain for _, chain, _ in await pairs(client, merchant.key)} == {
        "memory", "other", "third", "pretend", "idle",
    }  # fmt: skip
    for query, code in (
        ("srcChain=nowhere&srcToken=MEM", "UNSUPPORTED_CHAIN"),
        ("srcChain=memory&srcToken=NONE", "UNSUPPORTED_TOKEN"),
        ("srcChain=memory", "VALIDATION_ERROR"),
    ):
        refused(await client.get(f"{HERE}/pairs?{query}", headers=merchant.key), 400, code)


class Confused(Offering):
    def supports(self, sells, buys):  # noqa: ARG002  it does not get so far
        raise RuntimeError("which pair?")


async def test_a_provider_that_cannot_even_say_what_it_supports_is_left_out(client, rich, ask):
    provided(client, Confused("confused", times(1)))
    refused(await ask(), 400, "PAIR_NOT_SUPPORTED")
    provided(client, Confused("confused", times(1)), GOOD)
    assert (await ask()).json()["quote"]["provider"] == "good"


@pytest.mark.slow
async def test_a_slow_provider_is_left_out_after_its_time_and_nobody_waits_longer(client, gateway, rich, ask):
    provided(client, Slow(GOOD.service), GOOD)
    async with asyncio.timeout(5):
        assert (await ask()).json()["quote"]["provider"] == "good"
        provided(client, Slow(GOOD.service))
        refused(await ask("swap/execute"), 503, "EXCHANGE_UNAVAILABLE")
    assert await nothing_moved(gateway)


@pytest.mark.parametrize("reason", [*CODES, "mood"])
async def test_what_a_provider_refuses_is_a_400_with_its_code_and_reason(client, gateway, rich, ask, reason):
    error = ExchangeRefusedError("not\x1b[2J today", reason=reason)
    provided(client, Offering("picky", raising(error)))
    for path in ("swap/quote", "swap/execute"):
        body = refused(await ask(path), 400, CODES.get(reason, "EXCHANGE_REFUSED"))
        assert body["error"].startswith("picky will not do it: not")
        assert "\x1b" not in body["error"]
    assert await nothing_moved(gateway)


async def test_what_the_merchant_could_change_is_told_before_who_is_away(client, rich, ask):
    low = Offering("picky", raising(ExchangeRefusedError("at least 5", reason="amount_too_low")))
    provided(client, Offering("gone", raising(ProviderUnavailableError("down"))), low)
    refused(await ask(), 400, "EXCHANGE_AMOUNT_TOO_LOW")


async def test_an_offer_that_is_worth_much_less_than_what_is_given_is_refused(client, gateway, rich, ask):
    provided(client, Offering("shark", times(0.9)))
    body = refused(await ask("swap/execute"), 400, "PRICE_BELOW_GUARD")
    assert "1.8 DAIX" in body["error"]
    assert "less than 1.94 " in body["error"]
    assert await nothing_moved(gateway)
    await put(client, priceGuardBps=1_500)
    assert (await ask("swap/execute")).json()["quote"]["dstAmountMin"] == "1.782"


async def test_no_slippage_goes_below_the_guard(client, rich, ask):
    quoted = (await ask("swap/execute", slippage=50)).json()["quote"]
    assert (quoted["dstAmountMin"], quoted["slippagePercent"]) == ("1.94", 50.0)


async def test_a_rate_of_the_operators_is_a_guard_besides(client, rich, ask):
    await put(client, leastRates={"memory/MEM>memory/DAIX": "2.1"})
    refused(await ask(), 400, "PRICE_BELOW_GUARD")
    await put(client, leastRates={"memory/MEM>memory/DAIX": "1.99"})
    assert (await ask()).json()["quote"]["dstAmountMin"] == "1.99"


async def test_switches_of_the_operator_refuse_what_is_new(client, rich, ask):
    await put(client, swapEnabled=False)
    for path in ("swap/quote", "swap/execute"):
        refused(await ask(path), 503, "SWAP_DISABLED")
    assert (await ask("bridge/quote")).status_code == 200
    await put(client, swapEnabled=True, bridgeEnabled=False)
    for path in ("bridge/quote", "bridge/execute"):
        refused(await ask(path), 503, "BRIDGE_DISABLED")
    await put(client, providers={"fair": False})
    refused(await ask(), 400, "PAIR_NOT_SUPPORTED")


async def test_the_fee_of_a_bridge_is_told_and_kept_of_what_is_given(client, gateway, rich, ask):
    await put(client, bridgeFeeBps=100)
    quote = (await ask("bridge/quote")).json()["quote"]
    assert (quote["srcAmount"], quote["dstAmount"]) == ("5", "9.9")
    assert quote["platformFee"] == {"amount": "0.05", "token": "USDX"}
    made = (await ask("bridge/execute")).json()
    assert made["quote"]["platformFee"] == quote["platformFee"]
    assert await stored(gateway, "SELECT units, fee_units FROM exchanges") == [
        {"units": 5_000_000, "fee_units": 50_000}
    ]
    assert await stored(gateway, "SELECT units FROM outbound_intents") == [{"units": 4_950_000}]


async def test_the_fee_of_a_swap_goes_to_the_gas_station_and_is_told(client, gateway, rich, ask):
    one = Offering("one", times(0.997))
    provided(client, one)
    await put(client, swapFeeBps=30)
    refused(await ask(), 503, "EXCHANGE_UNAVAILABLE")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql(
            "INSERT INTO addresses (mode, family, address, purpose, account_index, change, address_index)"
            " VALUES ('live', 'memory', 'mem1station', 'gas', 0, 0, 0)"
        )
    quote = (await ask()).json()["quote"]
    assert (quote["dstAmount"], quote["platformFee"]) == ("1.994", {"amount": "0.006", "token": "DAIX"})
    assert (one.asked[-1].fee_bps, one.asked[-1].fee_recipient) == (30, "mem1station")
    assert (await ask("swap/execute")).json()["quote"]["platformFee"] == quote["platformFee"]


async def test_terms_that_change_while_providers_are_asked_are_not_taken(client, gateway, rich, ask):
    provided(client, Meanwhile(lambda: put(client, providers={"fair": False})))
    refused(await ask("swap/execute", idempotencyKey="k"), 503, "EXCHANGE_UNAVAILABLE")
    await put(client, providers={})
    provided(client, Meanwhile(lambda: put(client, swapEnabled=False)))
    refused(await ask("swap/execute", idempotencyKey="k"), 503, "SWAP_DISABLED")
    assert await nothing_moved(gateway)


async def test_a_fee_that_rises_while_providers_are_asked_is_not_taken(client, gateway, rich, ask):
    bridge = gateway.bridges[0]
    quote = bridge.quote

    async def raising_it(request):
        await put(client, bridgeFeeBps=100)
        return await quote(request)

    bridge.quote = raising_it
    refused(await ask("bridge/execute"), 503, "EXCHANGE_UNAVAILABLE")
    assert await nothing_moved(gateway)
    assert (await ask("bridge/execute")).json()["quote"]["platformFee"] == {"amount": "0.05", "token": "USDX"}


async def test_what_is_switched_off_or_used_up_while_providers_are_asked_starts_nothing(client, gateway, rich, ask):
    async def switch_off():
        async with gateway.db.transaction() as conn:
            await conn.exec_driver_sql("UPDATE projects SET is_active = false")

    async def use_up():
        body = {"amount": -2_000_000, "mode": "live", "reference": "all"}
        await client.post(f"/api/admin/merchants/{rich.merchant_id}/credits", json=body, headers=ADMIN)

    async def disable():
        assert (await client.put("/api/merchant/wallet/coins", json={"coins": []}, headers=rich.key)).status_code == 200

    provided(client, Meanwhile(disable))
    refused(await ask("swap/execute"), 400, "TOKEN_NOT_ENABLED")
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE coin_settings SET enabled = true")
    provided(client, Meanwhile(switch_off))
    refused(await ask("swap/execute"), 403, "PROJECT_INACTIVE")
    provided(client, Meanwhile(use_up))
    client._transport.app.state.web.key_cache.clear()
    async with gateway.db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE projects SET is_active = true")
    refused(await ask("swap/execute"), 402, "INSUFFICIENT_CPT")
    assert await nothing_moved(gateway)


async def test_settings_that_change_meanwhile_count_where_the_terms_stay(client, gateway, rich, ask):
    async def make_dearer():
        version = (await client.get("/api/admin/settings", headers=ADMIN)).json()["version"]
        chains = {"memory": {"swap": 77}}
        body = {"version": version, "cpt": {"weights": {"chains": chains}}, "exchanges": {"validMinutes": 7}}
        assert (await client.put("/api/admin/settings", json=body, headers=ADMIN)).status_code == 200

    provided(client, Meanwhile(make_dearer))
    made = await ask("swap/execute", idempotencyKey="k")
    assert made.status_code == 200, made.text
    assert await stored(gateway, "SELECT weight FROM usage_records WHERE operation = 'swap'") == [{"weight": 77}]
    (one,) = await stored(gateway, "SELECT txn_id, give_up_at - created_at = '7 minutes' AS is_new FROM exchanges")
    assert one == {"txn_id": made.json()["txnId"], "is_new": True}


@pytest.mark.parametrize(
    "changed, slippage, status",
    [
        ({"priceGuardBps": 10}, None, 503),
        ({"leastRates": {"memory/MEM>memory/DAIX": "1.99"}}, None, 503),
        ({"leastRates": {"memory/MEM>memory/USDX": "1.99"}}, None, 200),
        ({"defaultSlippageBps": 10}, None, 503),
        ({"defaultSlippageBps": 10}, 1, 200),
    ],
)
async def test_an_offer_is_taken_by_the_guards_that_stand_when_it_is_taken(
    client, gateway, rich, ask, changed, slippage, status
):
    provided(client, Meanwhile(lambda: put(client, **changed)))
    answer = await ask("swap/execute", slippage=slippage, idempotencyKey="k")
    assert answer.status_code == status, answer.text
    if status != 200:
        refused(answer, 503, "EXCHANGE_UNAVAILABLE")
        assert await nothing_moved(gateway)


async def test_a_missing_account_is_no_change_of_the_terms(client, gateway, merchant, ask, monkeypatch):
    await fund(gateway, merchant, "MEM", 10 * ONE)
    start, tries = execute.start_alone, []

    async def started(*arguments):
        tries.append(1)
        if len(tries) in {2, 3}:
            await put(client, validMinutes=10 + len(tries))
        return await start(*arguments)

    monkeypatch.setattr(execute, "start_alone", started)
    made = await ask("swap/execute")
    assert (made.status_code, len(tries)) == (200, 4), made.text


async def test_who_owes_since_the_providers_were_asked_exchanges_nothing(client, gateway, rich, ask):
    async def owe():
        await fund(gateway, rich, "MEM", -ONE)

    provided(client, Meanwhile(owe))
    refused(await ask("swap/execute", idempotencyKey="k"), 403, "RECEIVABLE_OUTSTANDING")
    assert await nothing_moved(gateway)
    assert not await stored(gateway, "SELECT id FROM audit_entries WHERE action = 'exchange.asked'")


async def test_who_never_had_a_token_has_too_little_of_it_and_no_account_either(gateway, rich, ask):
    refused(await ask("swap/execute", srcToken="DAIX", destToken="MEM"), 403, "INSUFFICIENT_BALANCE")
    assert await nothing_moved(gateway)
    assert len(await stored(gateway, "SELECT DISTINCT asset FROM ledger_accounts WHERE asset <> 'cpt'")) == 2


async def test_requests_at_once_take_no_more_than_there_is_and_leave_nothing_of_the_others(gateway, rich, ask):
    each = str(3 * ONE)
    answers = await asyncio.gather(*(ask("swap/execute", srcAmountRaw=each, idempotencyKey=str(n)) for n in range(8)))
    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [403] * 5
    for answer in answers:
        if answer.status_code != 200:
            refused(answer, 403, "INSUFFICIENT_BALANCE")
    for table in ("exchanges", "outbound_intents", "idempotency_keys", "usage_records", "audit_entries"):
        only = " WHERE action = 'exchange.asked'" if table == "audit_entries" else ""
        assert await stored(gateway, f"SELECT count(*) AS rows FROM {table}{only}") == [{"rows": 3}], table  # noqa: S608


async def test_nobody_waits_for_this_process_while_a_balance_is_locked(gateway, rich, ask, monkeypatch):
    await ask("swap/execute", idempotencyKey="first")
    statements, read = [], gateway.db.fetch_row

    async def noted(statement, *arguments):
        statements.append(statement)
        return await read(statement, *arguments)

    monkeypatch.setattr(gateway.db, "fetch_row", noted)
    engine = gateway.db.engine.sync_engine

    def executed(conn, cursor, statement, *_):
        statements.append(statement)

    def begun(conn):
        if conn.get_execution_options().get("isolation_level") != "AUTOCOMMIT":
            statements.append("BEGIN")

    listeners = {"before_cursor_execute": executed, "begin": begun}
    for name, listener in listeners.items():
        event.listen(engine, name, listener)
    try:
        assert (await ask("swap/execute", idempotencyKey="second")).status_code == 200
    finally:
        for name, listener in listeners.items():
            event.remove(engine, name, listener)
    assert len(statements) == 2, statements
    assert "ledger_movements" in statements[-1]


async def test_no_connection_is_held_while_providers_are_asked(client, gateway, rich, ask):
    held = []

    async def count_connections():
        # What the process does besides may have one for a moment; the request's own would stay.
        for _ in range(500):
            if not gateway.db.engine.pool.checkedout():
                break
            await asyncio.sleep(0.01)
        held.append(gateway.db.engine.pool.checkedout())

    provided(client, Meanwhile(count_connections))
    assert (await ask()).status_code == (await ask("swap/execute")).status_code == 200
    assert held == [0, 0]


@pytest.mark.parametrize("path", ["swap/execute", "bridge/execute"])
async def test_a_process_that_dies_between_quote_and_answer_has_made_the_exchange_once_or_not_at_all(
    client, gateway, rich, ask, monkeypatch, path
):
    """It dies at its first step, then at its second, and so on, until a request outlives that; each is repeated."""
    web, life, repeated = client._transport.app.state.web, Life(), []
    parts = {name: tuple(Fragile(one, life) for one in getattr(gateway, name)) for name in ("swaps", "bridges")}
    monkeypatch.setattr(web, "db", FragileDatabase(web.db, life))
    monkeypatch.setattr(web, "gateway", structs.replace(gateway, hints=Fragile(gateway.hints, life), **parts))
    units = "50000" if path.startswith("bridge") else str(ONE // 20)
    outlived = False
    while not outlived:
        order = {"idempotencyKey": f"k{len(repeated)}", "srcAmountRaw": units}
        life.steps, life.lived = len(repeated) + 1, 0
        try:
            outlived = (await ask(path, **order)).status_code == 200
        except KilledError:
            assert life.lived == life.steps
        life.steps = None
        answers = [(await ask(path, **order)).json() for _ in range(2)]
        assert answers[0]["txnId"] == answers[1]["txnId"], answers
        repeated.append("idempotent" in answers[0])
    assert repeated == sorted(repeated), "not at all until the commit, and once from then on"
    assert repeated.count(False) > 4
    assert repeated.count(True) > 3
    (made,) = await stored(gateway, "SELECT count(*) AS rows, sum(units)::bigint AS units FROM exchanges")
    assert made == {"rows": len(repeated), "units": len(repeated) * int(units)}
    query = "SELECT sum(balance)::bigint AS units FROM ledger_accounts WHERE purpose = 'pending'"
    assert await stored(gateway, query) == [{"units": made["units"]}]
    for table in ("outbound_intents", "idempotency_keys"):
        assert await stored(gateway, f"SELECT count(*) AS rows FROM {table}") == [{"rows": made["rows"]}]  # noqa: S608
