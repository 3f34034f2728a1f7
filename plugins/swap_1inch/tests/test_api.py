"""Answers that are none, refusals, limits, and what is never said of them."""

from __future__ import annotations

import gzip
import json
from email.utils import format_datetime

import pytest

from cambist.plugin import ExchangeRefusedError, ProviderUnavailableError
from cambist.testing.clock import START

from .conftest import config, connected, request
from .server import KEY, ROUTER, recorded, refusal_body


async def ask(swaps, what):
    return await (swaps.quote(request()) if what == "quote" else swaps.build(request(), 1))


both = pytest.mark.parametrize("what", ["quote", "build"])


@pytest.mark.parametrize(
    "description, reason",
    [
        ("insufficient liquidity", "no_liquidity"),
        ("Insufficient liquidity", "no_liquidity"),
        ("Not enough allowance. Amount: 5. Allowance: 0. Spender: 0x1111", "refused"),
        ("Not enough USDT balance. Amount: 5. Balance: 0.", "refused"),
        ("cannot estimate", "refused"),
        ("src and dst tokens should be different", "unsupported"),
        ("token 0x1234 is not supported", "unsupported"),
        ("src must be an Ethereum address", "unsupported"),
        ("Unknown token", "unsupported"),
        ("amount is too small", "amount_too_low"),
        ("amount is too large", "amount_too_high"),
        ("slippage must not be greater than 50", "refused"),
        ("", "refused"),
    ],
)
@both
async def test_a_refusal_has_a_reason(swaps, server, what, description, reason):
    server.status, server.body = 400, json.dumps(refusal_body(description)).encode()
    with pytest.raises(ExchangeRefusedError, match="1inch") as refused:
        await ask(swaps, what)
    assert refused.value.reason == reason


@pytest.mark.parametrize("example", ["QuoteRequestError", "SwapRequestError"])
async def test_the_documented_refusals_are_understood(swaps, server, example):
    server.status, server.body = 400, json.dumps(recorded("openapi_examples_v6_1.json")["examples"][example]).encode()
    with pytest.raises(ExchangeRefusedError):
        await swaps.quote(request())


async def test_what_is_said_in_a_refusal_is_short_visible_and_without_the_key(swaps, server):
    said = f"your key {KEY}\u202e \x1b[31m " + "src " * 100_000
    server.status, server.body = 400, json.dumps(refusal_body(said)).encode()
    with pytest.raises(ExchangeRefusedError) as refused:
        await swaps.quote(request())
    text = str(refused.value)
    assert KEY not in text
    assert text.isprintable()
    assert len(text) < 200


@pytest.mark.parametrize("status", [401, 403])
async def test_a_key_that_is_not_let_in_is_told_by_its_settings_name_alone(clock, server, status):
    async with connected(clock, config(server, key="another-k3y")) as swaps:
        server.status, server.body = (None, b"") if status == 401 else (403, b"another-k3y is blocked")
        with pytest.raises(ProviderUnavailableError, match=r"plugins\.swap_1inch\.key.*") as refused:
            await swaps.quote(request())
    assert str(status) in str(refused.value)
    assert "another-k3y" not in str(refused.value)


@pytest.mark.parametrize("status", [201, 204, 404, 405, 422, 451, 500, 502, 503])
@both
async def test_any_other_status_says_nothing(swaps, server, what, status):
    server.status = status
    with pytest.raises(ProviderUnavailableError, match=str(status)):
        await ask(swaps, what)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
@both
async def test_nobody_is_led_elsewhere(swaps, server, what, status):
    server.status, server.headers = status, {"Location": f"{server.base_url}/elsewhere"}
    with pytest.raises(ProviderUnavailableError, match="elsewhere"):
        await ask(swaps, what)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "retry_after, wait",
    [
        (None, 1),
        ("0", 1),
        ("7", 7),
        ("100000", 300),
        (format_datetime(START.replace(minute=1), usegmt=True), 60),
        (format_datetime(START.replace(hour=1), usegmt=True), 1),
        ("soon", 1),
        ("-5", 1),
        ("Mon, 99 Foo 10000000000 00:00:00", 1),
    ],
)
async def test_too_many_requests_is_heeded(clock, swaps, server, retry_after, wait):
    server.status, server.headers = 429, {} if retry_after is None else {"Retry-After": retry_after}
    for _ in range(2):  # the second time nothing is sent
        with pytest.raises(ProviderUnavailableError) as refused:
            await swaps.quote(request())
        assert refused.value.retry_after == wait
    assert len(server.requests) == 1
    server.status = None
    clock.advance(wait)
    await swaps.quote(request())


async def test_what_is_limited_again_and_again_is_asked_ever_more_seldom(clock, swaps, server):
    server.status = 429
    waits = []
    for _ in range(8):
        with pytest.raises(ProviderUnavailableError) as refused:
            await swaps.quote(request())
        waits.append(refused.value.retry_after)
        clock.advance(waits[-1])
    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]


@pytest.mark.parametrize("asked, told", [("12", 12), ("999999999999", 300)])
async def test_a_busy_servers_wish_is_told_within_reason(swaps, server, asked, told):
    server.status, server.headers = 503, {"Retry-After": asked}
    with pytest.raises(ProviderUnavailableError) as refused:
        await swaps.quote(request())
    assert refused.value.retry_after == told


async def test_silence_ends(clock, server):
    server.delay_s = 5
    async with connected(clock, config(server, timeout_ms=100)) as swaps:
        for what in ("quote", "build"):
            with pytest.raises(ProviderUnavailableError, match="100 ms"):
                await ask(swaps, what)


async def test_nobody_there_is_told_without_the_address(clock, server):
    async with connected(clock, config(server, base_url="http://127.0.0.1:1")) as swaps:
        with pytest.raises(ProviderUnavailableError, match="cannot be reached") as refused:
            await swaps.quote(request())
    assert "127.0.0.1" not in str(refused.value)


@both
async def test_an_endless_answer_ends(swaps, server, what):
    server.endless = True
    with pytest.raises(ProviderUnavailableError, match="more than"):
        await ask(swaps, what)


async def test_what_is_packed_is_not_unpacked(swaps, server):
    """A thousand bytes can become a million times as many."""
    server.status, server.headers = 200, {"Content-Encoding": "gzip"}
    server.body = gzip.compress(b'{"dstAmount": "4950000"}')
    with pytest.raises(ProviderUnavailableError, match="something else than a quote"):
        await swaps.quote(request())
    assert server.requests[0].headers["Accept-Encoding"] == "identity"


USUAL = {"dstAmount": "4950000", "tx": {"from": ROUTER, "to": ROUTER, "data": "0x07ed2379", "value": "0"}}


def changed(**changes):
    return {**USUAL, "tx": {**USUAL["tx"], **changes}}


GARBAGE = {
    "nothing": b"",
    "a page": b"<html><body>busy</body></html>",
    "broken": b'{"dstAmount": "12',
    "not UTF-8": b'{"dstAmount": "\xff\xfe"}',
    "null": b"null",
    "a list": b"[]",
    "text": b'"4950000"',
    "no amount": b"{}",
    "nested": b'{"x":' + b"[" * 200_000 + b"]" * 200_000 + b', "dstAmount": "1"}',
    "packed": b"\x1f\x8b\x08\x00",
}
AMOUNTS = [
    *(4950000, 4950000.5, None, True, [], {}, "", " 1", "1 ", "-1", "+1", "1.0", "1e6", "0x10", "1_000", "٣", "NaN"),
    *("1\n", "9" * 79, str(2**256)),
]  # fmt: skip


@pytest.mark.parametrize("body", GARBAGE.values(), ids=GARBAGE.keys())
@both
async def test_garbage_is_no_answer(swaps, server, what, body):
    server.status, server.body = 200, body
    with pytest.raises(ProviderUnavailableError):
        await ask(swaps, what)


@pytest.mark.parametrize("body", [b"", b"<html>", b"{}", b"[]", b'{"description": 1}', b'{"description": null}'])
@both
async def test_a_refusal_that_makes_no_sense_is_none(swaps, server, what, body):
    server.status, server.body = 400, body
    with pytest.raises(ProviderUnavailableError, match="something else than a refusal"):
        await ask(swaps, what)


@pytest.mark.parametrize("amount", AMOUNTS, ids=repr)
async def test_amounts_are_text_of_digits_and_fit_a_word(swaps, server, amount):
    for answer in ({"dstAmount": amount}, USUAL | {"dstAmount": amount}, changed(value=amount)):
        server.status, server.body = 200, json.dumps(answer).encode()
        with pytest.raises(ProviderUnavailableError):
            await ask(swaps, "quote" if "tx" not in answer else "build")


@pytest.mark.parametrize(
    "change",
    [
        *({"to": to} for to in (None, 1, "", "0x", ROUTER[2:], ROUTER + "00", ROUTER[:-2], ROUTER + "\n", [ROUTER])),
        *({"from": sender} for sender in (None, "", "0x12", {"address": ROUTER})),
        *({"data": data} for data in (None, 7, "", "0x", "0x0", "0x07ed237", "07ed2379", "0x07 ed", "0x07ed2379\n")),
    ],
    ids=repr,
)
async def test_addresses_and_data_are_hex_of_whole_bytes(swaps, server, change):
    server.status, server.body = 200, json.dumps(changed(**change)).encode()
    with pytest.raises(ProviderUnavailableError, match="something else than a swap"):
        await ask(swaps, "build")


async def test_what_a_swap_lacks_is_not_made_up(swaps, server):
    for name in ("from", "to", "data", "value"):
        answer = changed()
        del answer["tx"][name]
        server.status, server.body = 200, json.dumps(answer).encode()
        with pytest.raises(ProviderUnavailableError, match="something else than a swap"):
            await ask(swaps, "build")


async def test_the_documents_example_is_of_a_router_from_before(swaps, server):
    answer = recorded("openapi_examples_v6_1.json")["examples"]["SwapResponse"]
    server.status, server.body = 200, json.dumps(answer).encode()
    with pytest.raises(ProviderUnavailableError, match="not the pinned router"):
        await ask(swaps, "build")
