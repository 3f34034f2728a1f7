"""What nobody can mean is refused by name wherever money is asked for, and leaves nothing behind."""

from __future__ import annotations

import json

import pytest

from cambist.testing.memory.family import spell
from tests.support.payout_env import person
from tests.support.two_merchants import APPROVED, RESOLUTIONS, WALLET, WITHDRAWALS
from tests.support.web import refused

pytestmark = pytest.mark.slow

STORED = (
    "payouts", "payout_batches", "outbound_intents", "idempotency_keys", "ledger_transactions", "usage_records",
    "refund_parts", "approved_addresses", "webhook_deliveries",
)  # fmt: skip

NO_AMOUNTS = {
    "VALIDATION_ERROR": ("", 1, 1.5, True, ["1"], {"amount": "1"}, "1" * 161, "1\0"),
    "INVALID_AMOUNT": (
        "0", "0.000000", "-1", "+1", "1e5", "1E5", "٣", "\uff11", "1_0", "1,5", "0x1", "01", "00",
        ".5", "1.", " 1", "1 ", "1\n",
        "NaN", "Infinity", "1.0000001", "1.0000000", "1.2.3", "9" * 78, "one",
    ),
}  # fmt: skip
NO_ADDRESSES = {
    "VALIDATION_ERROR": ("", 1, None, "m" * 129, ["x"], "mem1\0"),
    "INVALID_ADDRESS": (
        "nowhere", "0x52908400098527886E0F7030069857D2E4169EE7", "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8",
        "1BvBMSEYstWetqTFn5Au4m4GFg7xJaNVN2", person()[:-1], person() + "a", person().replace("mem1", "mem2"),
        person().capitalize(), f" {person()}", f"{person()}\n", person()[:-1] + ("a" if person()[-1] != "a" else "b"),
        spell(bytes(20)),
    ),
}  # fmt: skip
NO_KEYS = ("", "k" * 256, 5, "a\0b")


class Doors:
    """Everything through which money can leave, each with a body that is right."""

    def __init__(self, two_merchants):
        coin = {"chain": "memory", "token": "USDX"}
        pay = {**coin, "toAddress": person(), "amount": "1"}
        key, back = two_merchants.ada.key, {"toAddress": person(), "amount": "1"}
        payment, deposit = two_merchants.ids["payment_id"], two_merchants.ids["deposit_id"]
        self.two_merchants = two_merchants
        self.all = {
            f"{WALLET}/payout": (pay, key),
            f"/api/payment/{payment}/refund": (back, key),
            f"{RESOLUTIONS}/{deposit}/refund": (back, key),
            WITHDRAWALS: (
                {**pay, "projectId": two_merchants.ada.project_id, "totpCode": two_merchants.phone.code()},
                two_merchants.ada.bearer,
            ),
        }
        self.named = {path: door for path, door in self.all.items() if "chain" in door[0]}

    async def ask(self, path, headers=None, **wrong):
        body, credential = self.all[path]
        return await self.two_merchants.client.post(
            path, json={**body, **wrong}, headers={**credential, **(headers or {})}
        )


@pytest.fixture
async def doors(two_merchants):
    return Doors(two_merchants)


@pytest.fixture
async def stored(gateway):
    async def stored():
        async with gateway.db.transaction() as conn:
            counts = {}
            for table in STORED:
                counts[table] = (await conn.exec_driver_sql(f"SELECT count(*) FROM {table}")).scalar_one()  # noqa: S608
            accounts = await conn.exec_driver_sql("SELECT id, balance FROM ledger_accounts WHERE balance <> 0")
            return counts, sorted(tuple(row) for row in accounts)

    return stored


async def test_what_is_no_amount_is_refused_at_every_door(doors, stored):
    before = await stored()
    for path in doors.all:
        for code, amounts in NO_AMOUNTS.items():
            for amount in amounts:
                refused(await doors.ask(path, amount=amount), 400, code, "amount")
    assert await stored() == before


async def test_what_is_no_address_of_the_chain_is_refused_at_every_door(doors, stored):
    before = await stored()
    for path in doors.all:
        for code, addresses in NO_ADDRESSES.items():
            for address in addresses:
                refused(await doors.ask(path, toAddress=address), 400, code, "toAddress")
    assert await stored() == before


async def test_a_tokens_contract_and_the_wallet_itself_are_no_targets(doors, stored, gateway, two_merchants):
    before = await stored()
    contract = gateway.registry.chains["memory"].token("USDX").contract
    (wallet,) = (await two_merchants.get(f"{WALLET}/addresses"))["addresses"]
    for path in doors.all:
        for spelling in (contract, contract.upper()):
            refused(await doors.ask(path, toAddress=spelling), 400, "TARGET_IS_CONTRACT", "toAddress")
        refused(await doors.ask(path, toAddress=wallet["address"]), 400, "INVALID_ADDRESS", "toAddress")
        if path == WITHDRAWALS:
            two_merchants.clock.advance(30)
    assert await stored() == before


async def test_chains_and_tokens_that_there_are_not_are_refused_by_field(doors, stored):
    before = await stored()
    for path in doors.named:
        for chain in ("nowhere", "Memory", "memory ", "ethereum"):
            refused(await doors.ask(path, chain=chain), 400, "UNSUPPORTED_CHAIN", "chain")
        for token in ("nothing", "usdx", "USDX ", "USD\u0425"):  # the last one ends in a Cyrillic letter
            refused(await doors.ask(path, token=token), 400, "UNSUPPORTED_TOKEN", "token")
        for name in ("chain", "token"):
            for value in ("", 5, None, "x" * 65, "a\0"):
                refused(await doors.ask(path, **{name: value}), 400, "VALIDATION_ERROR", name)
    assert await stored() == before


async def test_keys_that_are_none_or_two_are_refused(doors, stored):
    before = await stored()
    for path in doors.all:
        for key in NO_KEYS:
            refused(await doors.ask(path, idempotencyKey=key), 400, "VALIDATION_ERROR", "idempotencyKey")
        for key in ("", "k" * 256, "clé".encode(), "clé".encode("latin-1"), b"\xff"):
            answer = await doors.ask(path, headers={"Idempotency-Key": key})
            refused(answer, 400, "VALIDATION_ERROR", "Idempotency-Key")
        answer = await doors.ask(path, headers={"Idempotency-Key": "one"}, idempotencyKey="two")
        refused(answer, 400, "IDEMPOTENCY_KEY_MISMATCH")
    assert await stored() == before


async def test_fields_and_content_types_that_nobody_asked_for_are_refused(doors, stored, two_merchants):
    before = await stored()
    for path, (body, credential) in doors.all.items():
        for name in ("memo", "to_address", "ToAddress", "mode", "status"):
            refused(await doors.ask(path, **{name: "x"}), 400, "VALIDATION_ERROR", name)
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "*/*"):
            answer = await two_merchants.client.post(path, content=b"{}", headers={**credential, "Content-Type": kind})
            refused(answer, 415, "UNSUPPORTED_MEDIA_TYPE")
        digits = b'{"amount":"' + b"1" * 1_000_000 + b'"}'
        answer = await two_merchants.client.post(
            path, content=digits, headers={**credential, "Content-Type": "application/json"}
        )
        refused(answer, 413, "BODY_TOO_LARGE")
        answer = await two_merchants.client.post(path, json=[body], headers=credential)
        refused(answer, 400, "VALIDATION_ERROR")
    assert await stored() == before


async def test_what_is_said_twice_is_refused_at_every_door(doors, stored, two_merchants):
    """Whatever judged the body before us may have read the first amount, and we would pay the last."""
    before = await stored()
    for path, (body, credential) in doors.all.items():
        headers = {**credential, "Content-Type": "application/json"}
        for twin in ('"amount": "900"', '"am\\u006funt": "900"'):
            content = json.dumps({**body, "amount": "1"})[:-1] + f", {twin}}}"
            answer = await two_merchants.client.post(path, content=content, headers=headers)
            refused(answer, 400, "VALIDATION_ERROR", "amount")
        keys = [("Idempotency-Key", "one"), ("Idempotency-Key", "two")]
        answer = await two_merchants.client.post(path, json=body, headers=[*credential.items(), *keys])
        refused(answer, 400, "VALIDATION_ERROR", "Idempotency-Key")
    assert await stored() == before


async def test_slippage_is_a_number_from_0_to_50(doors, stored):
    path = f"{WALLET}/payout"
    before = await stored()
    swap = {"srcChain": "memory", "srcToken": "MEM", "srcAmount": "1", "amount": None}
    for slippage in ("1", "0.5", "1_0", "٣", "NaN", "", True, [1], -1, -0.001, 50.001, 10**30):
        refused(await doors.ask(path, slippage=slippage), 400, "VALIDATION_ERROR", "slippage")
    for slippage in (0, 50, 0.5, 1e-9):
        refused(await doors.ask(path, **swap, slippage=slippage), 400, "SWAP_NOT_SUPPORTED_FOR_CHAIN")
    assert await stored() == before


async def test_a_row_of_a_batch_is_refused_alone_for_what_would_refuse_it_alone(two_merchants, gateway):
    amounts = [one for ones in NO_AMOUNTS.values() for one in ones if isinstance(one, str) and "\0" not in one]
    addresses = [one for ones in NO_ADDRESSES.values() for one in ones if isinstance(one, str) and "\0" not in one]
    contract = gateway.registry.chains["memory"].token("USDX").contract
    mistakes = [
        *(("INVALID_AMOUNT", {"toAddress": person(), "amount": amount}) for amount in amounts),
        *(("INVALID_ADDRESS", {"toAddress": address, "amount": "1"}) for address in addresses),
        ("TARGET_IS_CONTRACT", {"toAddress": contract, "amount": "1"}),
        ("VALIDATION_ERROR", {"toAddress": person(), "amount": "1", "idempotencyKey": ""}),
        ("VALIDATION_ERROR", {"toAddress": person(), "amount": "1", "idempotencyKey": "k" * 256}),
    ]
    good = {"toAddress": person("good"), "amount": "1"}
    body = {"chain": "memory", "token": "USDX", "destinations": [*(row for _, row in mistakes), good]}
    made = await two_merchants.post(f"{WALLET}/payout/batch", body)
    assert (made["batch"]["acceptedRows"], made["batch"]["rejectedRows"]) == (1, len(mistakes))
    assert made["batch"]["totalAmount"] == "1"
    assert [one["row"] for one in made["rejected"]] == list(range(len(mistakes)))
    for one, (code, row) in zip(made["rejected"], mistakes, strict=True):
        assert one["code"] == code, one
        assert (one["toAddress"], one["amount"]) == (row["toAddress"], row["amount"])


async def test_a_batch_that_is_none_is_refused_as_a_whole(two_merchants, stored):
    before = await stored()
    row = {"toAddress": person(), "amount": "1"}
    whole = {"chain": "memory", "token": "USDX", "destinations": [row]}
    mistakes = {
        "destinations": ([], [row] * 101, {}, "x", None),
        "destinations[0]": ([5], ["x"], [None], [[]]),
        "destinations[0].amount": ([{**row, "amount": 1}], [{**row, "amount": None}], [{"toAddress": person()}]),
        "destinations[0].toAddress": ([{**row, "toAddress": 1}], [{**row, "toAddress": "x" * 1025}], [{"amount": "1"}]),
        "destinations[0].memo": ([{**row, "memo": "x"}],),
        "destinations[0].idempotencyKey": ([{**row, "idempotencyKey": 5}],),
        "destinations[1].amount": ([row, {**row, "amount": "1\0"}],),
    }
    for field, wrong in mistakes.items():
        for destinations in wrong:
            answer = await two_merchants.client.post(
                f"{WALLET}/payout/batch", json={**whole, "destinations": destinations}, headers=two_merchants.ada.key
            )
            refused(answer, 400, "VALIDATION_ERROR", field)
    for name, value, code in (("chain", "nowhere", "UNSUPPORTED_CHAIN"), ("token", "BTC", "UNSUPPORTED_TOKEN")):
        answer = await two_merchants.client.post(
            f"{WALLET}/payout/batch", json={**whole, name: value}, headers=two_merchants.ada.key
        )
        refused(answer, 400, code, name)
    assert await stored() == before


async def test_pages_and_filters_out_of_bounds_are_refused_by_name(two_merchants):
    lists = {
        f"{WALLET}/payouts": two_merchants.ada.key,
        f"{WALLET}/collections": two_merchants.ada.key,
        "/api/merchant/usage": two_merchants.ada.key,
        RESOLUTIONS: two_merchants.ada.key,
        "/api/payment/refunds/list": two_merchants.ada.key,
        WITHDRAWALS: two_merchants.ada.bearer,
        "/api/admin/collections": two_merchants.who["operator"],
    }
    numbers = ("0", "-1", "x", "1.5", "", "99999999999999999999", "٣", "true", "%00")
    for path, headers in lists.items():
        for value in numbers:
            for name in ("page", "limit"):
                answer = await two_merchants.client.get(f"{path}?{name}={value}", headers=headers)
                refused(answer, 400, "VALIDATION_ERROR", "query" if value == "%00" else name)
        refused(await two_merchants.client.get(f"{path}?limit=101", headers=headers), 400, "VALIDATION_ERROR", "limit")
        found = await two_merchants.get(f"{path}?limit=100&page=100", headers)
        assert (found["limit"], found["page"]) == (100, 100)
        for deep in ("limit=100&page=101", "limit=1&page=10001", "page=1000000"):
            answer = await two_merchants.client.get(f"{path}?{deep}", headers=headers)
            refused(answer, 400, "VALIDATION_ERROR", "page")
    for value in (*numbers, "101"):
        answer = await two_merchants.client.get(f"{WALLET}/transactions?limit={value}", headers=two_merchants.ada.key)
        refused(answer, 400, "VALIDATION_ERROR", "query" if value == "%00" else "limit")
    for path in (f"{WALLET}/payouts", "/api/payment/refunds/list"):
        refused(
            await two_merchants.client.get(f"{path}?status=x", headers=two_merchants.ada.key),
            400,
            "VALIDATION_ERROR",
            "status",
        )


@pytest.mark.parametrize("path", [f"{WALLET}/transactions", f"{WALLET}/transactions.csv"])
async def test_a_time_beyond_the_calendar_is_no_bug_of_ours(two_merchants, path):
    for bound in ("0001-01-01", "9999-12-31T23:59:59", "1969-12-31", "9999-12-31"):
        for name in ("from", "to"):
            answer = await two_merchants.client.get(f"{path}?{name}={bound}", headers=two_merchants.ada.key)
            assert answer.status_code == 200, answer.text
            assert ("led_" in answer.text) is ((name == "from") is (bound < "2000"))
    for bound in ("0001-01-01T00:00:00%2B14:00", "9999-12-31T23:59:59-14:00", "2026-13-01", "today", "1767225600"):
        for name in ("from", "to"):
            refused(
                await two_merchants.client.get(f"{path}?{name}={bound}", headers=two_merchants.ada.key),
                400,
                "VALIDATION_ERROR",
                name,
            )
    refused(
        await two_merchants.client.get(f"{path}?from=2026-01-02&to=2026-01-02", headers=two_merchants.ada.key),
        400,
        "VALIDATION_ERROR",
        "to",
    )


async def test_an_approval_names_an_address_of_its_chain(two_merchants, stored):
    before = await stored()
    right = {
        "chain": "memory",
        "address": person("x"),
        "label": "x",
        "mode": "live",
        "totpCode": two_merchants.phone.code(),
    }
    wrong = [
        *(("address", value, code) for code, values in NO_ADDRESSES.items() for value in values),
        ("chain", "nowhere", "UNSUPPORTED_CHAIN"),
        ("mode", "test", "VALIDATION_ERROR"),
        ("label", "x" * 101, "VALIDATION_ERROR"),
        ("totpCode", 5, "VALIDATION_ERROR"),
        ("totpCode", "5" * 65, "VALIDATION_ERROR"),
        ("memo", "x", "VALIDATION_ERROR"),
    ]
    for name, value, code in wrong:
        answer = await two_merchants.client.post(
            APPROVED, json={**right, name: value}, headers=two_merchants.ada.bearer
        )
        refused(answer, 400, code, name)
    assert await stored() == before
    assert (await two_merchants.client.post(APPROVED, json=right, headers=two_merchants.ada.bearer)).status_code == 201


async def test_a_coins_settings_are_refused_by_field(two_merchants):
    before = await two_merchants.picture()
    path = f"{WALLET}/coins/memory/USDX/settings"
    wrong = [
        *(
            ("autopayoutThreshold", value, code)
            for code, values in NO_AMOUNTS.items()
            for value in values
            if value not in ("0", "0.000000")
        ),
        *(
            ("autopayoutAddress", value, code)
            for code, values in NO_ADDRESSES.items()
            for value in values
            if value is not None
        ),
        *(("autopayoutPolicy", value, "VALIDATION_ERROR") for value in ("always", "", None, 1, "LIMIT")),
        *(("autoConvertEnabled", value, "VALIDATION_ERROR") for value in ("true", 1, None)),
        ("autoConvertDestChain", "nowhere", "UNSUPPORTED_CHAIN"),
        ("enabled", True, "VALIDATION_ERROR"),
    ]
    for name, value, code in wrong:
        answer = await two_merchants.client.patch(
            path,
            json={name: value, **({"autoConvertDestToken": "MEM"} if code == "UNSUPPORTED_CHAIN" else {})},
            headers=two_merchants.ada.key,
        )
        refused(answer, 400, code, name)
    for coin in (
        [{"chain": "memory"}],
        [{"chain": "memory", "token": "BTC"}],
        [5],
        {},
        [{"chain": "memory", "token": "MEM", "x": 1}],
        [{"chain": "memory", "token": "MEM"}] * 1001,
    ):
        answer = await two_merchants.client.put(f"{WALLET}/coins", json={"coins": coin}, headers=two_merchants.ada.key)
        assert answer.status_code == 400
        assert answer.json()["details"], answer.text
    assert await two_merchants.picture() == before
