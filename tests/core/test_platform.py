"""Platform settings: what was said holds, what was not said has its default, and nobody's change is lost."""

from __future__ import annotations

import asyncio

import msgspec
import pytest
import structlog

from cambist.domain.usage import (
    DEFAULT_CHAIN,
    USUAL,
    Operation,
    Pack,
    Tier,
    Weights,
    problem_of_packs,
    problem_of_tiers,
)
from cambist.services import platform
from cambist.services.errors import InvalidError
from cambist.services.platform import PlatformPatch, PlatformSettings, PlatformSettingsCache
from tests.support.payment_env import registry

CHECKSUMMED = "0x52908400098527886E0F7030069857D2E4169EE7"


def patch(**fields):
    """Return what a PUT of these fields decodes to, nested ones too."""
    return msgspec.convert(fields, PlatformPatch)


async def save(db, clock, **fields):
    async with db.transaction() as conn:
        return await platform.save(conn, registry(), patch(**fields), clock.now())


async def load(db):
    async with db.autocommit() as conn:
        return await platform.load(conn)


async def test_settings_that_nobody_has_changed_have_their_defaults(db):
    found = await load(db)
    assert found == PlatformSettings()
    assert (found.payout_enabled, found.payout_swap_enabled) == (True, False)
    assert found.cpt.floor <= 0 < found.cpt.initial_allowance
    assert problem_of_tiers(found.cpt.tiers) is None
    assert problem_of_packs(found.cpt.packs) is None


@pytest.mark.parametrize(
    "stored",
    [
        '{"targets": {"memory": ["mem1"]}}',
        '{"collection": {"minimum": "1"}}',
        '{"limits": {"memory/USDX": {"perWeek": "1"}}}',
    ],
)
async def test_what_is_stored_under_a_name_that_nobody_knows_is_not_passed_over(db, clock, stored):
    """It restricted where money goes, as it was called by another version."""
    await save(db, clock, payoutEnabled=True)
    async with db.transaction() as conn:
        await conn.exec_driver_sql("UPDATE platform_settings SET settings = $1::text::jsonb", (stored,))
        for act in (platform.load, platform.load_versioned):
            with pytest.raises(platform.StoredSettingsError, match="unknown field"):
                await act(conn)
    with pytest.raises(platform.StoredSettingsError, match="unknown field"):
        await save(db, clock, payoutEnabled=True)


async def test_a_change_leaves_alone_what_it_does_not_name(db, clock):
    await save(db, clock, payoutEnabled=False, collection={"minValueUsd": "12.5"}, cpt={"floor": -5})
    told = await save(db, clock, collection={"maxAgeHours": 24}, cpt={"weights": {"tracker": 7}})
    assert told == await load(db)
    assert told.payout_enabled is False
    assert (told.collection.min_value_usd, told.collection.max_age_hours) == ("12.5", 24)
    assert (told.cpt.floor, told.cpt.weights.tracker) == (-5, 7)
    assert told.cpt.weights.chains == Weights().chains


async def test_only_what_was_said_is_stored_so_that_later_defaults_hold(db, clock):
    await save(db, clock, collection={"enabled": False})
    async with db.autocommit() as conn:
        stored = (await conn.exec_driver_sql("SELECT settings::text FROM platform_settings")).scalar_one()
    assert msgspec.json.decode(stored) == {"collection": {"enabled": False}}


async def test_changes_at_the_same_moment_are_all_kept(db, clock):
    await asyncio.gather(
        save(db, clock, payoutEnabled=False),
        save(db, clock, payoutSwapEnabled=True),
        save(db, clock, limits={"memory/USDX": {"perDay": "100"}}),
        save(db, clock, collection={"maxFeeShareBps": 100}),
        save(db, clock, collection={"minValueUsd": "1"}),
        save(db, clock, cpt={"floor": -1}),
        save(db, clock, cpt={"initialAllowance": 3}),
        save(db, clock, cpt={"weights": {"webhookDelivery": 0}}),
    )
    found = await load(db)
    assert (found.payout_enabled, found.payout_swap_enabled) == (False, True)
    assert (found.collection.max_fee_share_bps, found.collection.min_value_usd) == (100, "1")
    assert (found.cpt.floor, found.cpt.initial_allowance, found.cpt.weights.webhook_delivery) == (-1, 3, 0)
    assert found.limit_of("memory", "USDX").per_day == "100"


async def test_limits_are_by_token_and_either_of_them_may_be_missing(db, clock):
    found = await save(db, clock, limits={"memory/USDX": {"perTransaction": "1.5"}})
    assert found.limit_of("memory", "USDX").per_transaction == "1.5"
    assert found.limit_of("memory", "USDX").per_day is None
    assert found.limit_of("memory", "MEM") is None


async def test_what_is_to_leave_has_to_fit_between_the_limits_and_nothing_may_leave_where_that_is_said(db, clock):
    for limit in ({"minimum": "1.50", "perTransaction": "1.5"}, {"minimum": "1", "perDay": "0"}):
        found = await save(db, clock, limits={"memory/USDX": limit})
        assert found.limit_of("memory", "USDX").minimum == limit["minimum"]


async def test_targets_are_stored_in_the_one_spelling_that_payouts_compare_with(db, clock):
    found = await save(db, clock, allowedAddresses={"bsc": [CHECKSUMMED, CHECKSUMMED.lower()], "memory": []})
    spelling = registry().families["evm"].normalize_address(CHECKSUMMED)
    assert found.allowed_addresses["bsc"] == (spelling,)
    assert found.allows_address("bsc", spelling)
    assert not found.allows_address("bsc", registry().families["evm"].normalize_address("0x" + "11" * 20))
    assert not found.allows_address("memory", "mem1"), "a chain with an empty list lets nothing out"
    assert found.allows_address("other", "anywhere")


@pytest.mark.parametrize(
    "fields, field",
    [
        ({"limits": {"memory": {"perDay": "1"}}}, "limits.memory"),
        ({"limits": {"memory/NONE": {"perDay": "1"}}}, "limits.memory/NONE"),
        ({"limits": {"nowhere/USDX": {"perDay": "1"}}}, "limits.nowhere/USDX"),
        ({"limits": {"memory/USDX": {"perDay": "-1"}}}, "limits.memory/USDX.perDay"),
        ({"limits": {"memory/USDX": {"perDay": "1\n"}}}, "limits.memory/USDX.perDay"),
        ({"limits": {"memory/USDX": {"perTransaction": "1e3"}}}, "limits.memory/USDX.perTransaction"),
        ({"limits": {"memory/USDX": {"perTransaction": "0.0000001"}}}, "limits.memory/USDX.perTransaction"),
        ({"limits": {"memory/USDX": {"minimum": "1", "perTransaction": "0.5"}}}, "limits.memory/USDX.minimum"),
        ({"limits": {"memory/USDX": {"minimum": "1", "perDay": "0.999999"}}}, "limits.memory/USDX.minimum"),
        ({"allowedAddresses": {"nowhere": []}}, "allowedAddresses.nowhere"),
        ({"allowedAddresses": {"bsc": [CHECKSUMMED, "0x12"]}}, "allowedAddresses.bsc[1]"),
        ({"collection": {"minValueUsd": "five"}}, "collection.minValueUsd"),
        ({"cpt": {"weights": {"chains": {"nowhere": {"payout": 1}}}}}, "cpt.weights.chains.nowhere"),
        ({"cpt": {"packs": [{"name": "a", "cpt": 1, "priceUsd": "1.001"}]}}, "cpt.packs[0].priceUsd"),
    ],
)
async def test_what_cannot_be_meant_is_refused_by_its_field_and_changes_nothing(db, clock, fields, field):
    with pytest.raises(InvalidError) as refused:
        await save(db, clock, payoutEnabled=False, **fields)
    assert [problem.field for problem in refused.value.details] == [field]
    assert await load(db) == PlatformSettings()


async def test_a_change_is_logged_with_what_was_changed(db, clock):
    with structlog.testing.capture_logs() as logs:
        await save(db, clock, payoutEnabled=False)
    assert logs == [{"event": "platform_settings_changed", "log_level": "info", "changed": {"payoutEnabled": False}}]


async def test_the_cache_reads_again_when_it_has_grown_old_or_was_told_to_forget(db, clock):
    cache = PlatformSettingsCache(db, clock)
    first = await cache.get()
    await save(db, clock, payoutEnabled=False)
    assert await cache.get() is first
    clock.advance(2)
    assert (await cache.get()).payout_enabled is False
    await save(db, clock, payoutEnabled=True)
    assert (await cache.get()).payout_enabled is False
    cache.forget()
    assert (await cache.get()).payout_enabled is True


def tiers(*ends):
    return [
        Tier(name=str(end), min_cpt=low, max_cpt=high, price_per_10k_usd="1") for low, high in ends for end in [low]
    ]


@pytest.mark.parametrize(
    "ranges, field",
    [
        ([(1, 10)], "[0].minCpt"),
        ([(0, 10), (12, 20)], "[1].minCpt"),
        ([(0, 10), (10, 20)], "[1].minCpt"),
        ([(0, None), (1, 20)], "[0].maxCpt"),
        ([(0, 10), (11, 10)], "[1].maxCpt"),
    ],
)
def test_tiers_that_leave_a_gap_overlap_or_end_too_soon_are_refused(ranges, field):
    problem = problem_of_tiers(tiers(*ranges))
    assert problem is not None
    assert problem[0] == field


def test_tiers_and_packs_have_names_of_their_own():
    assert problem_of_tiers(tiers((0, 10), (11, None))) is None
    assert problem_of_packs([Pack(name="a", cpt=1, price_usd="1")] * 2) == ("[1].name", "is there twice")


def test_a_chain_costs_what_it_says_itself_then_what_all_chains_say_then_the_usual():
    weights = msgspec.convert({"chains": {DEFAULT_CHAIN: {"payout": 7}, "bsc": {"payment": 3}}}, Weights)
    assert weights.of("payment", "bsc") == 3
    assert weights.of("payout", "bsc") == 7
    assert weights.of("refund", "bsc") == USUAL.refund
    assert weights.of("payment", "memory") == USUAL.payment
    assert weights.of("tracker") == weights.tracker
    assert msgspec.structs.asdict(weights.on("bsc")) == {**msgspec.structs.asdict(USUAL), "payout": 7, "payment": 3}


@pytest.mark.parametrize("name", ["lunch", Operation.RETURN])
def test_what_is_no_operation_has_no_weight(name):
    with pytest.raises(ValueError, match=r"lunch|no weight"):
        Weights().of(name, "bsc")
