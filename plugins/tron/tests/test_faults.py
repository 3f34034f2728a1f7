"""An endpoint that fails or answers nonsense, in every way: an error of the right kind, never a wrong answer."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from random import Random
from typing import Any

import pytest
from aiohttp import web

from cambist.plugin import (
    Chain,
    ChainError,
    ChainUnavailableError,
    InconsistentChainError,
    RateLimitedError,
    Span,
    SpanTooWideError,
)
from cambist.testing import watching
from cambist_tron.family import TronFamily

from .canned import CannedNode
from .forging import USDT, Mined, call, chain, info, inner, log, trx

pytestmark = pytest.mark.slow

Connect = Scan = Callable[..., Any]

SECRET = "sECRETkEY0123456789"
BUSY = {"Error": "class java.lang.IllegalAccessException : lack of computing resources"}
LITE = "this API is closed because this node is a lite fullnode"
DAY = {
    "status": 403,
    "text": '{"Success":false,"Error":"Exceed the user daily usage (100000), the maximum frequency is 5 per second"}',
}
SUSPENDED = {
    "status": 403,
    "text": '{"Error":"The key exceeds the frequency limit(15), and the query server is suspended for 5s"}',
}
TOKENS = [{"symbol": "USDT", "contract": USDT, "decimals": 6}]
BLOCKS, INFOS, HEAD = "wallet/getblockbylimitnext", "wallet/gettransactioninfobyblocknum", "wallet/getnodeinfo"


def payments(payer: str, customer: str, blocks: int = 30) -> list[Mined]:
    """Return blocks in each of which the customer is paid three times."""
    contents = []
    for number in range(blocks):
        plain = trx(payer, customer, 3 * number + 1, nonce=number)
        token = call(payer, nonce=number)
        logs, inners = [log(payer, customer, 3 * number + 2)], [inner(payer, customer, 3 * number + 3)]
        contents.append([(plain, info(plain)), (token, info(token, logs=logs, inners=inners))])
    return chain(*contents)


@pytest.fixture
async def node(payer: str, customer: str) -> AsyncIterator[CannedNode]:
    async with CannedNode(payments(payer, customer)) as node:
        yield node


def amounts(blocks: int) -> list[int]:
    """Return what ``payments`` pays, sorted."""
    return list(range(1, 3 * blocks + 1))


async def patiently(scan: Scan, chain: Chain, first: int, *addresses: str) -> list[int]:
    """Scan as the gateway does: after an error, look again; but without the wait."""
    for _ in range(200):
        try:
            return sorted(one.amount for one in (await scan(chain, first, *addresses)).transfers)
        except ChainError:
            for endpoint in chain.pool.endpoints:  # type: ignore[attr-defined]
                endpoint.retry_at = 0.0
    pytest.fail("no endpoint answered")


async def test_everything_is_found(node: CannedNode, connect: Connect, scan: Scan, customer: str) -> None:
    """In spans of several batches, in the order of the chain."""
    async with connect(node.url, batch_blocks_max=7, tokens=TOKENS) as chain:
        result = await scan(chain, 1, customer)
    assert [block.height for block in result.blocks] == list(range(1, 31))
    assert [one.amount % 3 for one in result.transfers] == [1, 0, 2] * 30
    assert sorted(one.amount for one in result.transfers) == amounts(30)
    assert node.calls[BLOCKS] == 5


@pytest.mark.parametrize(
    "path, answer, error",
    [
        (BLOCKS, BUSY, RateLimitedError),
        (INFOS, BUSY, RateLimitedError),
        (INFOS, {"status": 429, "text": ""}, RateLimitedError),
        (INFOS, DAY, RateLimitedError),
        (INFOS, SUSPENDED, RateLimitedError),
        (INFOS, {"status": 403, "text": ""}, ChainUnavailableError),
        (INFOS, {"status": 500, "text": "oops"}, ChainUnavailableError),
        (INFOS, {"status": 503, "text": "", "headers": {"Retry-After": "7"}}, RateLimitedError),
        (BLOCKS, {"status": 413, "text": ""}, SpanTooWideError),
        (BLOCKS, {"status": 413, "text": '{"Error":"ask for less"}'}, SpanTooWideError),
        (BLOCKS, {"Error": "response too large"}, SpanTooWideError),
        (BLOCKS, {"status": 400, "text": '{"error":"Response size exceeded"}'}, SpanTooWideError),
        (INFOS, {"Error": "response too large"}, ChainUnavailableError),
        (INFOS, LITE, ChainUnavailableError),
        (INFOS, {"Error": "this API is unavailable due to config"}, ChainUnavailableError),
        (INFOS, {"Error": "class java.lang.NullPointerException : null"}, ChainUnavailableError),
        (INFOS, {"error": {"code": -32000, "message": "upstream"}}, ChainUnavailableError),
        (INFOS, "<html>502</html>", ChainUnavailableError),
        (INFOS, "", ChainUnavailableError),
        (INFOS, '[{"id": "ab', ChainUnavailableError),
        (INFOS, "[" * 100_000, InconsistentChainError),
        (INFOS, {}, InconsistentChainError),
        (INFOS, [], InconsistentChainError),
        (INFOS, [{}], InconsistentChainError),
        (INFOS, [{"id": "ab"}], InconsistentChainError),
        (BLOCKS, {}, InconsistentChainError),
        (BLOCKS, {"block": []}, InconsistentChainError),
        (BLOCKS, {"block": [{}]}, InconsistentChainError),
        (BLOCKS, [], InconsistentChainError),
        (HEAD, {}, InconsistentChainError),
        (HEAD, {"block": "Num:5", "solidityBlock": "Num:5"}, InconsistentChainError),
        (HEAD, {"block": f"Num:5,ID:{'ab' * 32}", "solidityBlock": f"Num:5,ID:{'ab' * 32}"}, InconsistentChainError),
    ],
)
async def test_each_fault_is_the_error_it_should_be_and_passes(
    node: CannedNode, connect: Connect, scan: Scan, customer: str, path: str, answer: Any, error: type[ChainError]
) -> None:
    """While it lasts nothing is learned; afterwards everything is found. The endpoint's keys are in no message."""
    async with connect(f"{node.url}/{SECRET}", api_keys=[SECRET[::-1]]) as chain:
        node.answers[path] = answer
        with pytest.raises(error) as caught:
            await scan(chain, 1, customer)
        # What asks for no wait is not waited for: it would be five minutes.
        assert isinstance(caught.value, RateLimitedError) is (error is RateLimitedError)
        assert SECRET not in str(caught.value) + str(chain.endpoints())
        node.answers.clear()
        assert len(await patiently(scan, chain, 1, customer)) == 60
    assert set(node.keys) == {SECRET[::-1]}


async def test_a_key_that_a_provider_repeats_is_not_repeated(node: CannedNode, connect: Connect, scan: Scan) -> None:
    """Not that of the header, nor that of the address."""
    async with connect(f"{node.url}/{SECRET}", api_keys=[SECRET[::-1]]) as chain:
        node.answers[BLOCKS] = {"Error": f"key {SECRET[::-1]} of {SECRET} is unknown"}
        with pytest.raises(ChainUnavailableError, match=r"key \*\*\* of \*\*\* is unknown"):
            await scan(chain, 1)


@pytest.mark.parametrize(
    "answer, wait",
    [(BUSY, 0), (DAY, 300), (SUSPENDED, 5), ({"status": 429, "text": "", "headers": {"Retry-After": "30"}}, 30)],
)
async def test_the_wait_that_an_endpoint_asks_for_is_kept(
    node: CannedNode, connect: Connect, scan: Scan, answer: Any, wait: float
) -> None:
    """In whatever way it asks."""
    async with connect(node.url) as chain:
        node.answers[BLOCKS] = answer
        with pytest.raises(RateLimitedError) as caught:
            await scan(chain, 1)
        assert caught.value.retry_after == wait
        calls = node.calls.total()
        with pytest.raises(ChainUnavailableError, match="can be asked"):
            await scan(chain, 1)
        assert node.calls.total() == calls


async def test_an_endpoint_that_hangs_is_an_outage(node: CannedNode, connect: Connect, scan: Scan) -> None:
    """After the time that the operator gives it."""
    async with connect(node.url, request_timeout_ms=200) as chain:
        node.delay_s = 5.0
        with pytest.raises(ChainUnavailableError, match="did not answer"):
            await scan(chain, 1)


async def test_an_answer_without_end_is_cut(node: CannedNode, connect: Connect, scan: Scan) -> None:
    """So that it cannot fill the memory; a single block that is too long is an outage."""
    async with connect(node.url, response_bytes_max=1_000_000) as chain:
        node.answers[BLOCKS] = lambda _: " " * 2_000_000
        with pytest.raises(SpanTooWideError, match="more than 1000000 bytes"):
            await scan(chain, 1)
        with pytest.raises(ChainUnavailableError, match="more than 1000000 bytes"):
            await scan(chain, 30)


async def test_a_block_that_is_replaced_while_it_is_read_is_read_again(
    node: CannedNode, connect: Connect, scan: Scan, payer: str, customer: str
) -> None:
    """Its results are no longer those of the block that came first."""
    other = trx(payer, customer, 1000)
    (replaced,) = chain([(other, info(other))], first=30, parent=node.blocks[29]["blockID"])
    stale = node.blocks[30]

    def first_stale(body: Any) -> Any:
        del node.answers[BLOCKS]
        return {"block": [stale]}

    node.blocks[30], node.infos[30] = replaced
    node.answers[BLOCKS] = first_stale
    async with connect(node.url) as connected:
        result = await scan(connected, 30, customer)
    assert [(one.amount, one.block_hash) for one in result.transfers] == [(1000, replaced[0]["blockID"])]


async def test_what_one_of_several_nodes_behind_an_address_has_not_yet_is_asked_for_again(
    node: CannedNode, connect: Connect, scan: Scan, customer: str
) -> None:
    """Who told of the head has it. Nobody is left alone for a while because another answered the next question."""
    asked: Counter[str] = Counter()

    def behind(path: str, name: str) -> Callable[[Any], Any]:
        def told(body: Any) -> Any:
            asked[path] += 1
            body = dict(body, endNum=min(body.get("endNum", 0), 30)) if asked[path] % 3 else body
            return {} if name == "getblock" and asked[path] % 3 else node.answer(name, body, solid=False)

        return told

    node.answers = {path: behind(path, path.removeprefix("wallet/")) for path in (BLOCKS, "wallet/getblock")}
    async with connect(node.url) as chain:
        async with chain.view() as view:
            assert (await view.block(30)).hash == node.blocks[30]["blockID"]
        assert len((await scan(chain, 28, customer)).transfers) == 6
        assert len((await scan(chain, 30, customer)).transfers) == 2
        assert chain.endpoints()[0].failures == 0
    assert asked == {BLOCKS: 6, "wallet/getblock": 3}


@pytest.mark.parametrize(
    "response",
    [
        lambda: web.json_response({}),
        lambda: web.json_response([]),
        lambda: web.Response(status=500),
        lambda: web.json_response(BUSY),
        lambda: web.Response(text='{"block": [{"blockID": "00'),
        lambda: web.Response(text=LITE),
    ],
    ids=["object", "list", "500", "busy", "truncated", "lite"],
)
async def test_answers_that_are_none_now_and_then_lose_nothing(
    connect: Connect, scan: Scan, payer: str, customer: str, response: Callable[[], web.Response]
) -> None:
    """One in twenty, over six hundred payments."""
    random = Random(5)
    async with CannedNode(payments(payer, customer, 200)) as node:
        node.spoil = lambda: response() if random.random() < 0.05 else None
        async with connect(node.url, tokens=TOKENS) as connected:
            spans = [Span(first=first, last=first + 19) for first in range(1, 201, 20)]
            found = [amount for span in spans for amount in await insistently(connected, span, customer)]
    assert sorted(found) == amounts(200)


async def insistently(connected: Any, span: Span, customer: str) -> list[int]:
    """Scan a span, as often as it takes."""
    for _ in range(200):
        connected.pool.endpoints[0].retry_at = 0.0
        try:
            async with connected.view() as view:
                return [one.amount for one in (await view.scan(span, watching(TronFamily(), customer))).transfers]
        except ChainError:
            continue
    pytest.fail("no endpoint answered")


@pytest.mark.parametrize(
    "closed",
    [
        {"status": 404, "text": '{"Error":"this API is unavailable due to config"}'},
        {"status": 404, "text": "<html>404 Not Found</html>"},
        {"status": 405, "text": ""},
        {"Error": "this API is unavailable due to config"},
        "this API is closed because this node is a lite fullnode",
    ],
)
async def test_what_a_node_does_not_offer_is_asked_in_another_way_and_not_again(
    node: CannedNode, connect: Connect, closed: Any
) -> None:
    """The head from two questions, headers out of whole blocks."""
    node.answers = {HEAD: closed, "wallet/getblock": closed}
    async with connect(node.url) as chain:
        for _ in range(3):
            async with chain.view() as view:
                head = await view.head()
                assert (head.height, head.finalized_height) == (30, 12)
                assert (await view.block(7)).hash == node.blocks[7]["blockID"]
    assert (node.calls[HEAD], node.calls["wallet/getblock"]) == (1, 1)


async def test_no_more_is_asked_a_second_than_the_operator_allows(
    node: CannedNode, connect: Connect, scan: Scan, customer: str
) -> None:
    """A second's worth at once, the rest one after the other; and nothing is lost by waiting."""
    loop = asyncio.get_running_loop()
    async with connect(node.url, requests_per_second_max=20) as chain:
        started = loop.time()
        await scan(chain, 1, customer)
        took = loop.time() - started
    assert node.calls.total() == 34
    assert took > (34 - 20) / 20 * 0.9
