"""The machine that runs contracts, alone: prices counted by hand, movements beside the EVM's own balances."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from random import Random

import pytest

from cambist.testing.contracts import load
from cambist_tron_node.evm import GAS_MAX, AnvilMachine
from cambist_tron_node.machine import Call, Moment, NoContractError, Outcome
from cambist_tron_node.traces import hex_of

CALLER, HERE, THERE, RICH, NOBODY = (bytes([number]) * 20 for number in (0x11, 0x22, 0x33, 0x44, 0x55))
WITNESS = b"\x99" * 20
MOMENT = Moment(1_000, 1_700_000_000_999, WITNESS)
PLENTY = 10_000_000


class Balances(Counter[bytes]):
    """A world in which those exist who have something."""

    def balance(self, address: bytes) -> int:
        return self[address]

    def exists(self, address: bytes) -> bool:
        return self[address] > 0


@pytest.fixture
async def world() -> Balances:
    return Balances({CALLER: 10**12, RICH: 10**9, WITNESS: 7, HERE: 1_000})


@pytest.fixture
async def machine(machine: AnvilMachine, world: Balances) -> AsyncIterator[AnvilMachine]:
    await machine.start(world)
    yield machine
    await machine.close()


async def put(machine: AnvilMachine, code: str, address: bytes = HERE) -> None:
    """Create a contract that consists of this code, by code that returns it."""
    runtime = bytes.fromhex(code)
    size = len(runtime).to_bytes(2, "big").hex()
    creation = bytes.fromhex(f"61{size}80600c6000396000f3") + runtime
    outcome = await machine.create(Call(CALLER, address, creation, PLENTY), MOMENT)
    assert outcome.output == runtime, outcome


async def run(machine: AnvilMachine, data: bytes = b"", limit: int = PLENTY, value: int = 0) -> Outcome:
    return await machine.call(Call(CALLER, HERE, data, limit, call_value=value), MOMENT)


def push(address: bytes) -> str:
    return "73" + address.hex()


def calls(target: bytes, value: int) -> str:
    """Call with no data, with all gas there is, and drop the result."""
    return f"6000600060006000 61{value:04x} {push(target)} 5a f1 50".replace(" ", "")


CALL_PUSHES = 4 * 3 + 3 + 3 + 2 + 2


@pytest.mark.parametrize(
    "code, energy",
    [
        ("00", 0),
        ("5b6001600201505b00", 1 + 3 + 3 + 3 + 2 + 1),
        ("6001600055 00", 3 + 3 + 20_000),
        ("6001600055 6002600055 00", 2 * (3 + 3) + 20_000 + 5_000),
        ("6001600055 6000600055 00", 2 * (3 + 3) + 20_000 + 5_000),
        ("6000600055 00", 3 + 3 + 5_000),
        ("600054 50 600054 50 00", 2 * (3 + 50 + 2)),
        (push(THERE) + "31 50 00", 3 + 20 + 2),
        (push(THERE) + "3b 50 00", 3 + 20 + 2),
        (push(THERE) + "3f 50 00", 3 + 400 + 2),
        ("47 50 46 50 00", 5 + 2 + 2 + 2),
        ("6001600052 00", 3 + 3 + 1 + 3),
        ("600051 50 00", 3 + 1 + 3 + 2),
        ("60406000600037 00", 3 * 3 + 2 * 3 + 2 * 3),
        ("60406000600039 00", 3 * 3 + 2 * 3 + 2 * 3),
        ("604060002050 00", 3 + 3 + 30 + 2 * 6 + 2 * 3 + 2),
        ("6000600060206000 a2 00", 4 * 3 + 375 + 2 * 375 + 8 * 32 + 3),
        ("61ffff6002 0a 50 00", 3 + 3 + 10 + 2 * 10 + 2),
        ("5f50 00", 2 + 2),
        (calls(RICH, 0) + "00", CALL_PUSHES + 40),
        (calls(RICH, 5) + "00", CALL_PUSHES + 40 + 9_000 - 2_300),
        (calls(NOBODY, 5) + "00", CALL_PUSHES + 40 + 9_000 + 25_000 - 2_300),
        (calls(NOBODY, 5) * 2 + "00", 2 * (CALL_PUSHES + 40 + 9_000 - 2_300) + 25_000),
        (calls(NOBODY, 0) + "00", CALL_PUSHES + 40),
        (calls(bytes(19) + b"\x04", 0) + "00", CALL_PUSHES + 40 + 15),
        ("600060006000f0 50 00", 3 * 3 + 32_000 + 2),
    ],
)
async def test_each_operation_costs_what_it_does_on_tron(machine: AnvilMachine, code: str, energy: int) -> None:
    """By TRON's own list of prices, added up by hand."""
    await put(machine, code.replace(" ", ""))
    outcome = await run(machine)
    assert (outcome.status, outcome.energy_used, outcome.energy_penalty) == ("SUCCESS", energy, 0)


async def test_the_penalty_is_rounded_down_operation_by_operation(machine: AnvilMachine) -> None:
    await put(machine, "5b5b5b600050600054505000"[:18] + "00")
    machine.set_energy_factor(HERE, 34_000)
    outcome = await run(machine)
    costs = [1, 1, 1, 3, 2, 3, 50]
    assert outcome.energy_penalty == sum(cost * 34 // 10 for cost in costs)
    assert outcome.energy_used == sum(costs) + outcome.energy_penalty


async def test_the_penalty_is_that_of_the_contract_whose_operations_they_are(machine, world) -> None:
    """A contract in demand makes its own part dearer, and not the caller's."""
    await put(machine, "600050" * 10 + "00", THERE)
    await put(machine, calls(THERE, 0) + "00")
    plain = (await run(machine)).energy_used
    machine.set_energy_factor(THERE, 10_000)
    assert (await run(machine)).energy_used == plain + 50
    machine.set_energy_factor(HERE, 10_000)
    assert (await run(machine)).energy_penalty == 50 + CALL_PUSHES + 40
    assert world.exists(CALLER)


@pytest.mark.parametrize(
    "code, status, message",
    [
        ("fe", "ILLEGAL_OPERATION", "Invalid operation code: opCode[fe];"),
        ("600356", "BAD_JUMP_DESTINATION", "Operation with pc isn't 'JUMPDEST'"),
        ("50", "STACK_TOO_SMALL", "Expected stack size is larger than the actual one"),
        ("5b600c56", "OUT_OF_ENERGY", "Not enough energy for"),
        ("60006000fd", "REVERT", "REVERT opcode executed"),
    ],
)
async def test_a_failure_has_trons_name(machine: AnvilMachine, code: str, status: str, message: str) -> None:
    await put(machine, "6001600055600060006000a1" + code)
    before = await machine.mark()
    outcome = await run(machine, limit=100_000)
    assert outcome.status == status
    assert outcome.message.startswith(message)
    assert outcome.logs == ()
    assert (outcome.energy_used == 100_000) is (status != "REVERT")
    assert await machine.mark() == before


async def test_what_never_ends_ends_at_its_limit_or_for_want_of_time(machine: AnvilMachine) -> None:
    await put(machine, "5b600056")
    assert (await run(machine, limit=1_000_000)).status == "OUT_OF_ENERGY"
    endless = await run(machine, limit=100_000_000)
    assert (endless.status, endless.energy_used) == ("OUT_OF_TIME", 100_000_000)
    assert GAS_MAX < 100_000_000


async def test_a_contract_sees_the_block_the_caller_and_the_chain(machine: AnvilMachine) -> None:
    """Number, seconds, representative, caller, value, balance after the value came, chain id."""
    told = "".join(f"{op}60{place * 32:02x}52" for place, op in enumerate(["43", "42", "41", "33", "34", "47", "46"]))
    await put(machine, told + "60e06000f3")
    output = (await run(machine, value=5)).output
    words = [int.from_bytes(output[place : place + 32], "big") for place in range(0, len(output), 32)]
    seen = [1_000, 1_700_000_000, int.from_bytes(WITNESS, "big"), int.from_bytes(CALLER, "big"), 5, 1_005, 728126428]
    assert words == seen


async def test_a_contract_sees_everybodys_balance(machine, world) -> None:
    """Also of accounts that changed where the machine could not see it."""
    await put(machine, push(RICH) + "31600052" + push(NOBODY) + "3160205260406000f3")
    for rich, nobody in ((10**9, 0), (5, 6), (0, 10**15)):
        world[RICH], world[NOBODY] = rich, nobody
        output = (await run(machine)).output
        assert (int.from_bytes(output[:32], "big"), int.from_bytes(output[32:], "big")) == (rich, nobody)


async def test_what_is_told_of_calls_inside_is_what_real_nodes_tell(machine: AnvilMachine) -> None:
    """Borrowed code is a call of oneself, as recorded; built-in contracts are none; what cannot be paid never began."""
    await put(machine, "00", THERE)
    borrowed = f"6000600060006000{push(THERE)}5af450"
    looked = f"6000600060006000{push(THERE)}5afa50"
    built_in = calls(bytes(19) + b"\x04", 0)
    await put(machine, borrowed + looked + built_in + calls(RICH, 0xFFFF) + calls(RICH, 9) + "00")
    outcome = await run(machine)
    assert [(inner.caller, inner.target, inner.value, inner.note, inner.rejected) for inner in outcome.internal] == [
        (HERE, HERE, 0, "call", False),
        (HERE, THERE, 0, "call", False),
        (HERE, RICH, 9, "call", False),
    ]


async def test_there_is_a_way_back_as_often_as_asked(machine: AnvilMachine) -> None:
    """Code and storage return; marks made later are gone; a constant call sees the state of any mark."""
    await put(machine, "60005460005260206000f3", THERE)
    await put(machine, "60005460010160005500")  # adds one
    counts: dict[int, int] = {}
    for count in range(4):
        counts[await machine.mark()] = count
        await run(machine)
    await machine.create(Call(CALLER, NOBODY, bytes.fromhex("600a600c600039600a6000f3") + bytes(10), PLENTY), MOMENT)
    for mark, count in counts.items():
        plain = 3 + 50 + 3 + 3 + 3
        outcome = await machine.constant(Call(CALLER, HERE, b"", PLENTY), MOMENT, mark)
        assert outcome.energy_used == plain + (5_000 if count else 20_000)
        with pytest.raises(NoContractError):
            await machine.constant(Call(CALLER, NOBODY, b"", PLENTY), MOMENT, mark)
    first = next(iter(counts))
    for _ in range(2):
        await machine.rewind(first)
        assert (await run(machine)).energy_used == 3 + 50 + 3 + 3 + 3 + 20_000
    with pytest.raises(NoContractError):
        await machine.call(Call(CALLER, NOBODY, b"", PLENTY), MOMENT)


async def test_movements_are_those_of_the_evms_own_balances(machine, world) -> None:
    """Payments nested and failing at random: what the machine reports adds up to what the EVM did."""
    random = Random(4)
    splitter = load("Splitter")
    await machine.create(Call(CALLER, HERE, splitter.creation_code(), PLENTY), MOMENT)
    for case in range(40):
        payee, value = random.choice([RICH, NOBODY, bytes([case + 100]) * 20]), random.randrange(1, 2_000)
        depth = random.randrange(4)
        data = random.choice([
            splitter.call_data("nest", payee, value, depth, random.randrange(5)),
            splitter.call_data(
                "splitNativeSome", [payee, RICH], [value, 3], [random.random() < 0.5, random.random() < 0.5]
            ),
        ])  # fmt: skip
        call = Call(CALLER, HERE, data, PLENTY, call_value=random.randrange(1_000))
        after = await self_told(machine, world, call)
        outcome = await machine.call(call, MOMENT)
        if outcome.status == "SUCCESS":
            world[CALLER] -= call.call_value
            world[HERE] += call.call_value
        for internal in outcome.internal:
            assert not (outcome.status != "SUCCESS" and not internal.rejected)
            if not internal.rejected:
                world[internal.caller] -= internal.value
                world[internal.target] += internal.value
        assert {address: world[address] for address in after} == after


async def self_told(machine: AnvilMachine, world: Balances, call: Call) -> dict[bytes, int]:
    """Return the balances after a call as the EVM tells them, which the machine does not look at."""
    tx = {
        "from": hex_of(call.caller), "to": hex_of(call.contract), "value": hex(call.call_value), "gas": "0x989680",
        "gasPrice": "0x0", "data": hex_of(call.data),
    }  # fmt: skip
    state = {hex_of(address): {"balance": hex(sun)} for address, sun in world.items()}
    tracer = {"tracer": "prestateTracer", "tracerConfig": {"diffMode": True}, "stateOverrides": state}
    told = await machine._anvil.call("debug_traceCall", [tx, "latest", tracer])
    return {
        bytes.fromhex(address[2:]): int(account["balance"], 16)
        for address, account in told["post"].items()
        if "balance" in account
    }
