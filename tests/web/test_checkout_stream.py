"""The live side of the checkout: what open pages are sent, and that they cost no more than they may."""

import asyncio
import time

import aiohttp
import pytest

from cambist_web.checkout.streams import CheckoutOptions
from tests.support.checkout import checkout_app, serving

ONE = 1_000_000


async def collect(events, *, until, seconds=60):
    """Return the events up to the one that contains the text."""
    seen = []
    async with asyncio.timeout(seconds):
        async for event in events:
            seen.append(event.decode())
            if until in seen[-1]:
                return seen
    raise AssertionError(f"the stream ended without {until!r}: {seen}")


@pytest.mark.slow
async def test_a_page_is_told_every_state_until_nothing_can_change(checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    events = checkout_env.checkout().events(public_id)
    assert "Amount to send" in (await collect(events, until="event: card"))[0]
    await checkout_env.send(address, 4 * ONE)
    await collect(events, until="send 6 USDX more")
    await checkout_env.send(address, 6 * ONE)
    await collect(events, until="Payment detected")
    await checkout_env.mine()
    await collect(events, until="1 of 3")
    await checkout_env.mine(2)
    seen = await collect(events, until="event: end")
    assert "Payment complete" in seen[-2]
    with pytest.raises(StopAsyncIteration):
        await anext(events)


async def test_a_hint_is_faster_than_the_clock(checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    events = checkout_env.checkout(CheckoutOptions(poll_open_s=60, poll_late_s=60)).events(public_id)
    await collect(events, until="Amount to send")
    waiting = asyncio.create_task(collect(events, until="Payment complete"))
    await asyncio.sleep(0.05)
    await checkout_env.send(address, 10 * ONE, blocks=4)
    await checkout_env.hints.publish(f"payment:{public_id}")
    await asyncio.wait_for(waiting, 60)


@pytest.mark.slow
async def test_the_end_of_the_time_is_told_when_it_comes(checkout_env, clock):
    public_id, _ = await checkout_env.payment(10 * ONE)
    clock.advance(3599.8)
    events = checkout_env.checkout(CheckoutOptions(poll_open_s=60, poll_late_s=60)).events(public_id)
    await collect(events, until="Amount to send")
    waiting = asyncio.create_task(collect(events, until="Time is up"))
    await asyncio.sleep(0.05)
    clock.advance(0.2)
    await waiting


async def test_a_silent_stream_beats(checkout_env, clock):
    public_id, _ = await checkout_env.payment(10 * ONE)
    events = checkout_env.checkout(CheckoutOptions(poll_open_s=0.02, heartbeat_s=20)).events(public_id)
    await collect(events, until="Amount to send")
    clock.advance(21)
    assert await collect(events, until=": still here") == [": still here\n\n"]


async def test_a_stream_ends_by_itself_after_its_lifetime(checkout_env, clock):
    public_id, _ = await checkout_env.payment(10 * ONE)
    checkout = checkout_env.checkout(CheckoutOptions(poll_open_s=0.02, lifetime_s=900, heartbeat_s=1000))
    events = checkout.events(public_id)
    await collect(events, until="Amount to send")
    clock.advance(901)
    async with asyncio.timeout(60):
        assert [event async for event in events] == []
    assert checkout.streams == 0


async def test_streams_are_bounded_for_a_payment_and_in_all(checkout_env):
    one, other = (await checkout_env.payment(10 * ONE))[0], (await checkout_env.payment(10 * ONE))[0]
    checkout = checkout_env.checkout(CheckoutOptions(streams_max=3, streams_per_payment_max=2))
    open_streams = [checkout.events(one), checkout.events(one)]
    for events in open_streams:
        await anext(events)
    assert not checkout.has_room(one)
    assert checkout.has_room(other)
    open_streams.append(checkout.events(other))
    await anext(open_streams[-1])
    assert not checkout.has_room(other)
    for events in open_streams:
        await events.aclose()
    assert checkout.streams == 0
    assert checkout.has_room(one)


async def test_streams_that_are_asked_for_at_the_same_moment_are_bounded_too(checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    checkout = checkout_env.checkout(CheckoutOptions(streams_per_payment_max=2))
    assert checkout.has_room(public_id)  # which every one of them was told
    open_streams = [checkout.events(public_id) for _ in range(5)]
    first = [await anext(events) for events in open_streams]
    assert checkout.streams == 2
    assert [event.startswith(b"event: card") for event in first] == [True, True, False, False, False]
    assert first[-1] == b"retry: 10000\n\n"
    for events in open_streams:
        await events.aclose()
    assert checkout.streams == 0


async def test_a_browser_that_goes_away_gives_its_place_back(checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    checkout = checkout_env.checkout()
    async with serving(checkout_app(checkout)) as url, aiohttp.ClientSession() as session:
        async with session.get(f"{url}/pay/{public_id}/events") as response:
            assert response.headers["content-type"].startswith("text/event-stream")
            assert b"event: card" in await response.content.readline()
            assert checkout.streams == 1
            response.close()
        for _ in range(100):
            if checkout.streams == 0:
                break
            await asyncio.sleep(0.05)
        assert checkout.streams == 0


async def test_without_room_the_page_is_asked_to_come_again(checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    options = CheckoutOptions(streams_per_payment_max=1)
    async with (
        serving(checkout_app(checkout_env.checkout(options))) as url,
        aiohttp.ClientSession() as session,
        session.get(f"{url}/pay/{public_id}/events") as first,
    ):
        await first.content.readline()
        async with session.get(f"{url}/pay/{public_id}/events") as second:
            assert second.status == 503
            assert second.headers["retry-after"] == "10"


async def test_a_stream_of_an_ended_payment_closes_its_connection(checkout_env):
    public_id, address = await checkout_env.payment(10 * ONE)
    await checkout_env.send(address, 10 * ONE, blocks=4)
    async with (
        serving(checkout_app(checkout_env.checkout())) as url,
        aiohttp.ClientSession() as session,
        asyncio.timeout(60),
        session.get(f"{url}/pay/{public_id}/events") as response,
    ):
        body = await response.text()
    assert "Payment complete" in body
    assert body.endswith("event: end\ndata: paid\n\n")


async def test_open_streams_do_not_hold_up_the_end_of_the_server(checkout_env):
    public_id, _ = await checkout_env.payment(10 * ONE)
    checkout = checkout_env.checkout(CheckoutOptions(poll_open_s=60))
    async with aiohttp.ClientSession() as session:
        async with serving(checkout_app(checkout)) as url:
            response = await session.get(f"{url}/pay/{public_id}/events")
            await response.content.readline()
            started = time.monotonic()
        assert time.monotonic() - started < 30
        assert checkout.streams == 0
        response.close()
