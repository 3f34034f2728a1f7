"""Who may exchange, at what price, and what is refused before anything is taken."""

import asyncio

import pytest

from cambist.plugin import ExchangeRefusedError, ProviderUnavailableError
from cambist.services.errors import ForbiddenError, InvalidError, PaymentRequiredError, UnavailableError
from tests.support.exchange_env import MEM, USDX, ExchangeEnv, PricedBridge, PricedService, PricedSwaps
from tests.support.stubborn import stay


@pytest.fixture
async def env(db, clock, ids, tmp_path):
    async with ExchangeEnv(db, clock, ids, tmp_path / "signer") as env:
        yield env


def ask(env, **providers):
    """Have these providers asked, and what else an exchange needs come from the same places as before."""
    env.context = type(env.context)(
        registry=env.registry, keys=env.keys, clock=env.clock, ids=env.ids, rates=env.rates, **providers
    )


@pytest.mark.slow
async def test_the_best_offer_wins_and_who_is_slow_or_broken_or_switched_off_is_left_out(env):
    await env.opened(usdx=100 * USDX)
    better, slow, nonsense = (PricedSwaps(PricedService(env.prices.board)) for _ in range(3))
    better.name, slow.name, nonsense.name = "better", "slow", "nonsense"
    better.service.fee_bps, slow.service.fee_bps, nonsense.service.fee_bps = 5, 0, -(10**70)

    async def never(_):
        await asyncio.sleep(60)

    slow.quote = never
    ask(env, swaps=[env.swaps, better, slow, nonsense], quote_timeout_ms=1_000)
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert offer.provider == "better"
    await env.set(exchanges={"providers": {"better": False}})
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert offer.provider == "fair"


async def test_an_offer_that_cannot_be_meant_keeps_no_other_from_being_taken(env):
    """As of a provider that counts in another token's decimals: its calls never give so much, and it won each time."""
    await env.opened(usdx=100 * USDX)
    dreamer = PricedSwaps(PricedService(env.prices.board))
    dreamer.name, dreamer.service.fee_bps = "dreamer", -(10**7)
    ask(env, swaps=[dreamer, env.swaps])
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert offer.provider == "fair"
    await env.set(exchanges={"providers": {"fair": False}})
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert offer.provider == "dreamer"


async def test_who_offers_next_to_nothing_makes_no_other_offer_one_that_cannot_be_meant(env):
    """Where we have no price, the operator's least rate says nothing of what is too much."""
    await env.opened(usdx=100 * USDX)
    cheap = PricedSwaps(PricedService(env.prices.board | {("DAIX", "usd"): "1"}))
    cheap.name, cheap.service.fee_bps = "cheap", 9_999
    ask(env, swaps=[cheap, env.swaps])
    env.swap_service.fee_bps = -(10**7)
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert offer.provider == "fair"
    env.swap_service.fee_bps, cheap.service.fee_bps = 0, 7_000
    env.swap_service.board = dict(env.prices.board)
    del env.prices.board["DAIX", "usd"]
    env.rates._entries.clear()
    await env.set(exchanges={"leastRates": {"memory/USDX>memory/DAIX": "0.1"}})
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert (offer.provider, offer.quote.units) == ("fair", 10 * 10**18)


async def test_a_bad_bargain_is_refused_by_our_own_prices_or_by_the_operators_rate(env):
    await env.opened(usdx=100 * USDX)
    env.swap_service.fee_bps = 400
    with pytest.raises(InvalidError, match=r"less than 9\.7 is refused") as refused:
        await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert refused.value.code == "PRICE_BELOW_GUARD"
    await env.set(exchanges={"priceGuardBps": 500})
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX", slippage_bps=5_000)
    assert offer.units_min == 95 * 10**17
    del env.prices.board["DAIX", "usd"]
    env.rates._entries.clear()
    env.swap_service.board = {**env.prices.board, ("DAIX", "usd"): "1"}
    with pytest.raises(InvalidError) as refused:
        await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert refused.value.code == "EXCHANGE_PRICE_UNKNOWN"
    await env.set(exchanges={"leastRates": {"memory/USDX>memory/DAIX": "0.9"}})
    _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX", slippage_bps=5_000)
    assert offer.units_min == 9 * 10**18


@pytest.mark.parametrize(
    "error, code, kind",
    [
        (ExchangeRefusedError("less than a dollar", reason="amount_too_low"), "EXCHANGE_AMOUNT_TOO_LOW", InvalidError),
        (ExchangeRefusedError("not today"), "EXCHANGE_REFUSED", InvalidError),
        (ProviderUnavailableError("away"), "EXCHANGE_UNAVAILABLE", UnavailableError),
        (ValueError("a bug"), "EXCHANGE_UNAVAILABLE", UnavailableError),
        (asyncio.CancelledError(), "EXCHANGE_UNAVAILABLE", UnavailableError),
        (BaseException("panic"), "EXCHANGE_UNAVAILABLE", UnavailableError),
    ],
)
async def test_where_nobody_offers_anything_the_answer_says_why(env, monkeypatch, error, code, kind):
    async def refuse(_):
        raise error

    await env.opened(usdx=100 * USDX)
    monkeypatch.setattr(env.swaps, "quote", refuse)
    with pytest.raises(kind) as refused:
        await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    assert refused.value.code == code


async def test_nothing_is_taken_that_is_not_there_or_not_paid_for(env):
    await env.opened(usdx=10 * USDX)
    with pytest.raises(ForbiddenError) as refused:
        await env.ask("memory/USDX", 10 * USDX + 1, "memory/DAIX")
    assert refused.value.code == "INSUFFICIENT_BALANCE"
    results = await asyncio.gather(
        *(env.ask("memory/USDX", 6 * USDX, "memory/DAIX") for _ in range(4)), return_exceptions=True
    )
    assert sum(isinstance(one, str) for one in results) == 1
    await env.set(cpt={"floor": 0})
    with pytest.raises(PaymentRequiredError) as unpaid:
        await env.ask("memory/USDX", USDX, "memory/DAIX")
    assert unpaid.value.code == "INSUFFICIENT_CPT"
    await env.set(exchanges={"swapEnabled": False}, cpt={"floor": -1_000_000})
    with pytest.raises(UnavailableError) as off:
        await env.ask("memory/USDX", USDX, "memory/DAIX")
    assert off.value.code == "SWAP_DISABLED"


async def test_coin_that_would_come_back_as_a_token_that_nobody_watches_is_not_bridged(env, monkeypatch):
    await env.opened(mem=5 * MEM)
    monkeypatch.setattr(env.bridge, "refund_contract", lambda _: "wrapped")
    with pytest.raises(InvalidError, match="comes back wrapped") as refused:
        await env.offered("memory/MEM", MEM, "other/MEM")
    assert refused.value.code == "PAIR_NOT_SUPPORTED"


async def test_a_bridge_that_cannot_say_what_it_gives_back_keeps_no_other_from_offering(env, monkeypatch):
    def fail(sells):
        raise KeyError(sells.chain.id)

    await env.opened(usdx=100 * USDX)
    broken = PricedBridge(PricedService(env.prices.board), env.other.seen_time)
    broken.name = "broken"
    monkeypatch.setattr(broken, "refund_contract", fail)
    ask(env, bridges=[broken, env.bridge])
    _, offer = await env.offered("memory/USDX", 10 * USDX, "other/USDX")
    assert offer.provider == env.bridge.name != "broken"


@pytest.mark.slow
async def test_a_quote_that_catches_its_cancellation_is_late_like_any_other(env, monkeypatch):
    freed = asyncio.Event()
    await env.opened(usdx=100 * USDX)
    stubborn = PricedSwaps(PricedService(env.prices.board))
    stubborn.name = "stubborn"
    monkeypatch.setattr(stubborn, "quote", lambda _: stay(freed))
    ask(env, swaps=[stubborn, env.swaps], quote_timeout_ms=200)
    async with asyncio.timeout(30):
        _, offer = await env.offered("memory/USDX", 10 * USDX, "memory/DAIX")
    freed.set()
    assert offer.provider == env.swaps.name
