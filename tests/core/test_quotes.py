"""Quotes: what an order costs in tokens, without making it."""

from decimal import Context, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import convert

from cambist.plugin import Token
from cambist.services.actor import Actor
from cambist.services.chain_pauses import Pausable
from cambist.services.chains.rules import TokenRule, TokenRules
from cambist.services.errors import InvalidError, UnavailableError
from cambist.services.pricing.prices import RateBook
from cambist.services.pricing.quotes import Ask, find_asset, read_units
from cambist.services.receiving.payments.quote import Asking, quote
from tests.support.payment_env import Prices, registry

CHAINS = registry().chains
ALL_OPEN = TokenRules()
NONE_PAUSED = {}
DIRECT = {"chain": "memory", "token": "USDX", "pricingMode": "direct_crypto", "amount": "10.50"}


async def asked(clock, mode="live", rules=ALL_OPEN, pauses=NONE_PAUSED, **fields):
    rates = RateBook([Prices(clock)], clock)
    actor = Actor(merchant_pk=7, merchant_id="mer_7", project_pk=1, project_id="prj_1", mode=mode)
    asking = convert({**DIRECT, **fields}, Ask)
    return await quote(Asking(chains=CHAINS, token_rules=rules, pauses=pauses, rates=rates), actor, asking, clock.now())


async def test_a_price_in_tokens_needs_no_rate(clock):
    found = await asked(clock)
    assert (found.rate, found.expected_amount, found.expected_amount_raw, found.decimals, found.source) == (
        None, "10.50", "10500000", 6, "direct_crypto",
    )  # fmt: skip
    assert (found.valid_until - clock.now()).total_seconds() == 60


@pytest.mark.parametrize("mode", ["live", "sandbox"])
async def test_a_token_that_is_not_enabled_for_this_merchant_is_not_quoted(clock, mode):
    rules = TokenRules()
    contract = next(token.contract for token in CHAINS["memory"].tokens if token.symbol == "USDX")
    for rule, allowed in (
        (TokenRule(is_open=False, by_default=True), False),
        (TokenRule(is_open=True, by_default=False), False),
        (TokenRule(is_open=True, by_default=False, merchants={8: True}), False),
        (TokenRule(is_open=True, by_default=True, merchants={7: False}), False),
        (TokenRule(is_open=True, by_default=False, merchants={7: True}), True),
    ):
        rules.replace({("memory", contract): rule})
        if allowed:
            assert (await asked(clock, mode, rules)).expected_amount == "10.50"
            continue
        with pytest.raises(InvalidError) as error:
            await asked(clock, mode, rules)
        assert (error.value.code, error.value.details[0].field) == ("TOKEN_NOT_ENABLED", "token")
    assert (await asked(clock, mode, rules, token="MEM")).expected_amount == "10.50"


async def test_a_chain_that_nobody_watches_is_quoted_in_sandboxes_alone(clock):
    pauses = {("memory", Pausable.WATCHING): "maintenance"}
    with pytest.raises(UnavailableError, match="not available"):
        await asked(clock, pauses=pauses)
    assert (await asked(clock, "sandbox", pauses=pauses)).expected_amount == "10.50"


async def test_a_currency_beside_a_price_in_tokens_is_not_looked_at(clock):
    assert (await asked(clock, fiatCurrency="usd")).rate is None


async def test_a_fiat_price_is_rounded_up_to_what_wallets_can_enter(clock):
    found = await asked(clock, token="MEM", pricingMode="fiat", amount="10", fiatCurrency="usd")
    assert (found.rate, found.expected_amount, found.source) == ("3", "3.33333334", "board")
    assert found.expected_amount_raw == "3333333340000000000"


async def test_a_currency_that_nobody_prices_is_no_currency_to_ask_in(clock):
    with pytest.raises(InvalidError) as error:
        await asked(clock, pricingMode="fiat", fiatCurrency="jpy", amount="10")
    assert (error.value.code, error.value.details[0].field) == ("UNSUPPORTED_CURRENCY", "fiatCurrency")


async def test_the_currencys_own_minor_units_count(clock):
    with pytest.raises(InvalidError, match="JPY"):
        await asked(clock, pricingMode="fiat", fiatCurrency="jpy", amount="10.5")


def test_a_sandbox_project_has_every_chain_and_a_live_one_those_with_endpoints():
    assert {chain for chain in CHAINS if find_asset(CHAINS, chain, CHAINS[chain].native.symbol, "sandbox")} == set(
        CHAINS
    )
    for chain in ("simulated", "unconfigured", "bsc"):
        with pytest.raises(UnavailableError):
            find_asset(CHAINS, chain, CHAINS[chain].native.symbol, "live")


@given(st.integers(1, 10**60), st.sampled_from([0, 2, 6, 8, 18]))
def test_every_amount_is_read_exactly(units, decimals):
    token = Token(symbol="T", contract="c", decimals=decimals, label="T")
    text = format(Context(prec=100).scaleb(Decimal(units), -decimals), "f")
    assert read_units(text, token) == units
