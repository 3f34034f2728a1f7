"""The kit catches what it is for: each of its tests fails on a chain that is broken in that way, and none is lost."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from typing import ClassVar

import pytest
from msgspec.structs import replace

from cambist.plugin import ChainError
from cambist.testing import conformance
from cambist.testing.conformance import AddressFamilyConformance, ChainConformance, PriceSourceConformance
from cambist.testing.conformance.activation import ActivationConformance
from cambist.testing.conformance.calls import CallConformance
from cambist.testing.conformance.expiry import ExpiryConformance
from cambist.testing.conformance.lending import LendingConformance
from cambist.testing.conformance.trials import TrialConformance
from cambist.testing.harness import COINS_HELD, Abilities
from cambist.testing.memory import MemoryChain, MemoryFamily, MemoryHarness, memory_chain_info
from cambist.testing.memory.rules import RESERVE, MemoryRules
from tests.core import broken_sources
from tests.core.broken_callers import BROKEN
from tests.support.memory_calls import MemoryCallHarness

pytestmark = pytest.mark.slow

GUARD = "test_no_test_of_the_kit_is_overridden_quietly"
PRICE_KIT = sorted(name for name in dir(PriceSourceConformance) if name.startswith("test_") and name != GUARD)
KIT = sorted(name for name in dir(ChainConformance) if name.startswith("test_") and name != GUARD)
EVERYWHERE = {"test_nothing_is_dead_where_nothing_expires", "test_nothing_is_called_where_no_contracts_run"}
CALL_KITS = (TrialConformance, CallConformance)
CALLS = {name for kit in CALL_KITS for name in vars(kit) if name.startswith("test_")} - EVERYWHERE
SKIPPED_WITH_SEQUENCES = CALLS | {
    name
    for kit in (ExpiryConformance, ActivationConformance, LendingConformance)
    for name in vars(kit)
    if name.startswith("test_") and name not in EVERYWHERE
}
RUN_WITH_SEQUENCES = len(KIT) - len(SKIPPED_WITH_SEQUENCES)


async def run_test(name: str, harness: MemoryHarness) -> None:
    """Run one test of the kit as pytest would, with what it asks for."""
    test = getattr(ChainConformance(), name)
    offered = {"harness": harness, "family": harness.family, "samples": harness.samples}
    result = test(**{argument: offered[argument] for argument in inspect.signature(test).parameters})
    if inspect.isawaitable(result):
        await result


async def outcome(name: str, harness: MemoryHarness) -> str:
    """Return the word that pytest has for it, or the reason of a skip; a failure is raised."""
    try:
        await run_test(name, harness)
    except pytest.skip.Exception as skip:
        return "skipped" if str(skip).startswith("the harness has no ability") else str(skip)
    return "passed"


def one_of_each_kind() -> list[MemoryHarness]:
    return [MemoryHarness(), MemoryHarness.lending(), MemoryCallHarness()]


def test_for_each_test_of_the_kit_there_is_a_broken_chain():
    assert sorted(BROKEN) == KIT


def test_tags_that_python_takes_for_numbers_are_caught():
    class Numbers(MemoryFamily):
        def normalize_tag(self, text) -> str:
            super().normalize_tag(text.strip("+ ").replace("_", ""))
            return str(int(text))

    with pytest.raises(AssertionError):
        ChainConformance().test_every_tag_has_one_normal_form(Numbers(), MemoryHarness().samples)


async def test_a_chain_that_spends_outputs_and_prepares_without_them_is_caught():
    harness = MemoryHarness(MemoryChain(memory_chain_info(), rules=MemoryRules()))
    await run_test("test_a_sender_who_cannot_pay_is_told", harness)
    harness.abilities = replace(harness.abilities, outputs=True)
    with pytest.raises(AssertionError):
        await run_test("test_a_sender_who_cannot_pay_is_told", harness)


@pytest.mark.parametrize("name", KIT)
async def test_a_broken_chain_is_caught(name):
    assert {await outcome(name, harness) for harness in one_of_each_kind()} != {"skipped"}
    with pytest.raises((AssertionError, pytest.fail.Exception, ChainError)):
        await run_test(name, BROKEN[name]())


def test_for_each_test_of_the_price_kit_there_is_a_broken_source():
    assert sorted(broken_sources.BROKEN) == PRICE_KIT


@pytest.mark.parametrize("name", PRICE_KIT)
async def test_a_broken_price_source_is_caught(name):
    test = getattr(PriceSourceConformance(), name)
    await test(broken_sources.ShelfHarness())
    with pytest.raises((AssertionError, pytest.fail.Exception, KeyError)):
        await test(broken_sources.BROKEN[name]())


async def test_what_the_harness_cannot_do_is_skipped_by_name_and_nothing_else_is():
    harness = MemoryHarness()
    harness.abilities = Abilities()
    skipped = [name for name in KIT if await outcome(name, harness) == "skipped"]
    assert 77 <= len(skipped) <= 101


async def test_every_test_of_the_kit_runs_on_one_of_the_kinds_of_chains():
    skipped = [{name for name in KIT if await outcome(name, harness) == "skipped"} for harness in one_of_each_kind()]
    assert skipped[0] == SKIPPED_WITH_SEQUENCES
    assert len(skipped[1] - CALLS) == 9
    assert skipped[2] == SKIPPED_WITH_SEQUENCES - CALLS
    assert not set.intersection(*skipped)


async def test_an_account_of_the_kit_can_keep_what_its_chain_asks_for_beside_its_fees():
    plain, reserving = MemoryHarness(), MemoryHarness.lending()
    coin = 10**plain.chain.info.native.decimals
    assert await plain.coins_held() == COINS_HELD * coin
    assert await reserving.coins_held() == COINS_HELD * coin + RESERVE


async def test_a_coin_with_few_decimals_is_enough_for_what_the_kit_sends():
    native, *others = memory_chain_info().tokens
    info = replace(memory_chain_info(), tokens=(replace(native, decimals=0), *others))
    for name in ("test_what_is_sent_arrives", "test_equal_steps_are_two_transactions"):
        chain = MemoryChain(info)
        chain.fees.base_price, chain.fees.tip, chain.fees.price_min = 1, 0, 0
        await run_test(name, MemoryHarness(chain))


def test_an_override_without_a_reason_is_refused():
    with pytest.raises(TypeError, match=r"Sloppy: test_the_head_is_the_newest_block overrides a test of the kit"):

        class Sloppy(ChainConformance):
            async def test_the_head_is_the_newest_block(self, harness):
                pass


def test_an_override_through_a_mixin_or_by_none_is_refused():
    class Mixin:
        test_the_head_is_the_newest_block = None

    with pytest.raises(TypeError, match="overrides a test of the kit"):

        class Sloppy(Mixin, ChainConformance):
            pass


def test_a_deviation_needs_a_reason_and_a_test():
    with pytest.raises(TypeError, match="deviates without a reason"):

        class Wordless(PriceSourceConformance):
            deviations: ClassVar = {"test_a_source_has_a_name": " "}

    with pytest.raises(TypeError, match="test_that_never_was is no test of the kit"):

        class Mistaken(PriceSourceConformance):
            deviations: ClassVar = {"test_that_never_was": "a reason"}


def test_the_kit_cannot_be_switched_off():
    with pytest.raises(TypeError, match="_declared_deviation belongs to the kit"):

        class Cunning(AddressFamilyConformance):
            @pytest.fixture(autouse=True)
            def _declared_deviation(self):
                """Let every deviation pass."""


def test_an_override_after_the_class_was_made_is_caught_when_the_kit_runs(monkeypatch):
    class Later(ChainConformance):
        pass

    Later().test_no_test_of_the_kit_is_overridden_quietly()
    monkeypatch.setattr(Later, "test_the_head_is_the_newest_block", lambda _: None)
    with pytest.raises(AssertionError):
        Later().test_no_test_of_the_kit_is_overridden_quietly()


MODULE = """
import pytest
from cambist.plugin import PriceUnavailableError
from cambist.plugin import ChainError, InvalidAddressError
from cambist.testing import conformance
from cambist.testing.conformance import ChainConformance
from cambist.testing.memory import MemoryChain, MemoryHarness, MemoryView, memory_chain_info


class TestChain(ChainConformance):
    {body}

    @pytest.fixture
    async def harness(self):
        yield MemoryHarness()
"""


CONFORMING, OLD_NAME, EXAMPLE = "conforming", "old_name", "example"
BODIES = {
    CONFORMING: "",
    "deviation_that_is_none_any_more": 'deviations = {"test_the_head_is_the_newest_block": "it is not"}',
    "declared_override": """deviations = {"test_the_head_is_the_newest_block": "its own way"}
    def test_the_head_is_the_newest_block(self): assert True""",
    "quiet_override": "def test_the_head_is_the_newest_block(self): pass",
    OLD_NAME: 'deviations = {"test_the_chain_has_an_id_and_a_name": "an old name"}',
}
SKIPPED = {"SKIPPED": len(SKIPPED_WITH_SEQUENCES)}
OUTCOME = re.compile(
    r"^test_(\w+)\.py::\S+ (PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR)\b|^(ERROR) test_(\w+)\.py\b", re.MULTILINE
)


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Have pytest run the kit on all modules, as authors do on theirs; give how often each had which outcome."""
    folder = tmp_path_factory.mktemp("authors")
    modules = {name: MODULE.format(body=body) for name, body in BODIES.items()}
    modules[OLD_NAME] = modules[OLD_NAME].replace(
        "MemoryHarness()", 'MemoryHarness(MemoryChain(memory_chain_info("Old Name"), finality_lag_blocks=5))'
    )
    modules[EXAMPLE] = textwrap.dedent(conformance.__doc__.split("::\n")[1].split("\n``")[0])
    for name, text in modules.items():
        (folder / f"test_{name}.py").write_text(text)
    (folder / "pytest.ini").write_text("[pytest]\nasyncio_mode = auto\n")
    # One start for all of them: what cannot be collected keeps the others from nothing.
    options = ("-v", "-p", "no:cacheprovider", "--continue-on-collection-errors")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=folder,
        env=inherited,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    found = {name: Counter() for name in modules}
    for name, outcome, error, of in OUTCOME.findall(ran.stdout):
        found[name or of][outcome or error] += 1
    return found


@pytest.mark.parametrize(
    "name, expected",
    [
        (CONFORMING, {"PASSED": RUN_WITH_SEQUENCES + 1, **SKIPPED}),
        ("deviation_that_is_none_any_more", {"PASSED": RUN_WITH_SEQUENCES, "FAILED": 1, **SKIPPED}),
        ("declared_override", {"PASSED": RUN_WITH_SEQUENCES + 1, **SKIPPED}),
        ("quiet_override", {"ERROR": 1}),
    ],
)
def test_authors_run_the_kit_with_pytest(outcomes, name, expected):
    assert outcomes[name] == expected


def test_a_declared_deviation_that_holds_is_an_expected_failure(outcomes):
    assert outcomes[OLD_NAME] == {"PASSED": RUN_WITH_SEQUENCES, "XFAIL": 1, **SKIPPED}


def test_the_example_in_the_docstring_runs(outcomes):
    assert outcomes[EXAMPLE] == {"PASSED": RUN_WITH_SEQUENCES + 1, **SKIPPED}
