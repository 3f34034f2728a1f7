"""How much energy a token's transfer needs, and whether it takes it at all: tried on a node, nothing is sent.

What a source does not hold yet is no obstacle: so much is tried as is there. A first balance costs most, and what
gave the recipient one may be mined later than the transfer, or never: so it is tried on the solid side as well.
What a recipient holds may also be gone by then: where that is to be counted on, it is tried to an address without any.

A token may keep a fee of what is moved: that of USDT is 0, and its issuer can change it at any time. Less would arrive
than the books say, and than whoever is paid was promised, so nothing is sent.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from msgspec import Struct

from cambist.plugin import ChainUnavailableError, InconsistentChainError, Intent
from cambist_chainkit.contracts import TRANSFER, first_word, transfer_data
from cambist_chainkit.reverts import one_line, refusal_in

from .addresses import hex_of, raw_of
from .decode import TRANSFER_TOPIC, TRANSFER_TOPICS, WORD
from .endpoint import Endpoint
from .fees import Prices
from .replies import ConstantCall, text_of

ENERGY_UNKNOWN: Final = 140_000
"""For what cannot be tried: the dearest transfer of a token that many use, USDT to who has none, and some more."""

UNTRIED_ENERGY: Final = 20_000
"""What writing down a first balance costs, before the factor: left out where less was tried than will be sent."""

TRIES: Final = 3
"""So often it is asked again, by whoever would refuse for what a node behind the others does not know yet."""

ENERGY_MAX: Final = 10**9
"""Far above what a call may use on any network, and far below what no field holds."""

_SHOWN_MAX: Final = 100
_INVALID: Final = "CONTRACT_VALIDATE_ERROR"
_NO_CONTRACT: Final = re.compile(r"contract is not exist|no contract|not a (?:valid )?smart contract", re.IGNORECASE)
_VM_EXCEPTION: Final = re.compile(r"\bProgram\$(?!OutOfTime|JVMStack)\w+Exception\s*:?\s*")
"""How nodes tell of what a contract ended by, unless it reverted; but time and stack are what the node ran out of."""
_REFUSED_BY_VM: Final = re.compile(
    "revert|not enough energy|out_of_energy|invalid|illegal|jumpdest|stack", re.IGNORECASE
)
_OUT_OF_TIME: Final = re.compile(r"time ?out|out.?of.?time", re.IGNORECASE)


class Trial(Struct, frozen=True, kw_only=True):
    """What came of trying: the energy and what to allow, or why it must not be."""

    used: int = 0
    limit: int = 0
    refused: str | None = None


async def measure(endpoint: Endpoint, intent: Intent, prices: Prices) -> Trial:
    """Return what the transfer of a token needs, or why it is refused. Raises ChainError."""
    trial = await _tried(endpoint, intent, prices)
    if trial.refused is not None:
        return trial
    # As if nothing after the solid block had been.
    return dearer(trial, await measure_least(endpoint, intent, prices, state="walletsolidity"))


async def measure_least(endpoint: Endpoint, intent: Intent, prices: Prices, *, state: str = "wallet") -> Trial:
    """Return what sending the least of it needs; 0 where it cannot be. ``state`` is as for ``balance_of``."""
    run = await _transfer(endpoint, intent, min(intent.amount, 1), state=state)
    return _allowed(endpoint, run, prices) if run.succeeded else Trial()


def dearer(one: Trial, other: Trial) -> Trial:
    """Return the one that has more to be allowed."""
    return max(one, other, key=lambda trial: trial.limit)


async def _tried(endpoint: Endpoint, intent: Intent, prices: Prices) -> Trial:
    run = await _transfer(endpoint, intent, intent.amount)
    if run.succeeded:
        return _short(intent, run, intent.amount) or _allowed(endpoint, run, prices)
    refusal = _refusal(endpoint, intent, run)
    if run.result.code == _INVALID:
        return Trial(refused=refusal)
    held = await balance_of(endpoint, intent.source, intent.token.contract or "")
    # Behind one address may be nodes that are some blocks apart: one that tried the transfer does not have yet what
    # another tells of. Only what is solid was there for sure.
    solid = min(held, await _balance(endpoint, intent.source, intent.token.contract or "", state="walletsolidity") or 0)
    if solid >= intent.amount:
        return Trial(refused=refusal)
    run = await _transfer(endpoint, intent, solid)
    if run.succeeded:
        return _short(intent, run, solid) or _allowed(endpoint, run, prices, untried=UNTRIED_ENERGY)
    refusal = _refusal(endpoint, intent, run)
    if solid:
        return Trial(refused=refusal)
    if held >= intent.amount:
        return await _tried_again(endpoint, intent, prices, refusal)
    # Some tokens take no transfer of nothing: whether they would take the other cannot be told yet.
    return Trial(used=ENERGY_UNKNOWN, limit=ENERGY_UNKNOWN)


async def _tried_again(endpoint: Endpoint, intent: Intent, prices: Prices, refusal: str) -> Trial:
    """Try it some more times where nothing that is held is solid: any node that takes it has what the others lack."""
    for _ in range(TRIES):
        run = await _transfer(endpoint, intent, intent.amount)
        if run.succeeded:
            return _short(intent, run, intent.amount) or _allowed(endpoint, run, prices)
    return Trial(refused=refusal)


def _short(intent: Intent, run: ConstantCall, amount: int) -> Trial | None:
    """Refuse a transfer of which less than this would arrive. A node that tells no logs says nothing of that."""
    contract, recipient = (raw_of(one).hex() for one in (intent.token.contract or "", intent.to_address))
    arrived = [
        int(log.data, 16)
        for log in run.logs
        if log.address.endswith(contract)
        and len(log.topics) == TRANSFER_TOPICS
        and log.topics[0] == TRANSFER_TOPIC
        and log.topics[2].endswith(recipient)
        and WORD.fullmatch(log.data)
    ]
    if not arrived or sum(arrived) >= amount:
        return None
    kept, sent = (_spelled(units, intent) for units in (amount - sum(arrived), amount))
    token = intent.token.symbol
    return Trial(refused=f"the token {token} keeps {kept} of {sent} {token} as a fee of its own: less would arrive")


def _spelled(units: int, intent: Intent) -> str:
    return f"{Decimal(units).scaleb(-intent.token.decimals).normalize():f}"


def _allowed(endpoint: Endpoint, run: ConstantCall, prices: Prices, *, untried: int = 0) -> Trial:
    base = run.energy_used - run.energy_penalty
    if base > 0 and run.energy_penalty >= 0:
        used, penalty = (part * (base + untried) // base for part in (run.energy_used, run.energy_penalty))
        limit = prices.limit_for(used, penalty)
        if limit <= ENERGY_MAX:
            return Trial(used=used, limit=limit)
    told = f"{run.energy_used} energy, {run.energy_penalty} of it by the factor"
    raise InconsistentChainError(f"{endpoint.name} says that a transfer uses {told[:_SHOWN_MAX]}")


async def balance_of(endpoint: Endpoint, address: str, contract: str, *, state: str = "wallet") -> int:
    """Return what the address holds of a token. ``state`` says of which blocks, as paths do."""
    balance = await _balance(endpoint, address, contract, state=state)
    if balance is None:
        raise InconsistentChainError(f"{endpoint.name} finds no token contract at {contract}")
    return balance


async def _balance(endpoint: Endpoint, address: str, contract: str, *, state: str) -> int | None:
    """Return the same, None where there is no contract that tells one."""
    call = (contract, "balanceOf(address)", raw_of(address).rjust(32, b"\0"))
    run = await _run(endpoint, address, call, state=state)
    check_ran(endpoint, run)
    try:
        return first_word(run.output) if run.succeeded else None
    except ValueError as error:
        raise InconsistentChainError(f"{endpoint.name} answered a balance that is no number") from error


async def _transfer(endpoint: Endpoint, intent: Intent, amount: int, *, state: str = "wallet") -> ConstantCall:
    arguments = transfer_data(raw_of(intent.to_address), amount)[len(TRANSFER) :]
    call = (intent.token.contract or "", "transfer(address,uint256)", arguments)
    return await _run(endpoint, intent.source, call, state=state)


async def _run(endpoint: Endpoint, caller: str, call: tuple[str, str, bytes], *, state: str = "wallet") -> ConstantCall:
    contract, function, arguments = call
    body = {
        "owner_address": hex_of(caller),
        "contract_address": hex_of(contract),
        "function_selector": function,
        "parameter": arguments.hex(),
    }
    return await endpoint.post(f"{state}/triggerconstantcontract", body, ConstantCall)


def check_ran(endpoint: Endpoint, run: ConstantCall) -> None:
    """Raise ChainUnavailableError where the node failed, and not the contract."""
    told = text_of(run.result.message)
    if run.succeeded or _is_missing(run, told):
        return
    ended = _REFUSED_BY_VM.search(told) or not told if run.result.result else _VM_EXCEPTION.search(told)
    if not ended or _OUT_OF_TIME.search(told):
        raise ChainUnavailableError(f"{endpoint.name} did not run a contract: {run.result.code} {told}")


def _is_missing(run: ConstantCall, told: str) -> bool:
    return run.result.code == _INVALID and _NO_CONTRACT.search(told) is not None


def _refusal(endpoint: Endpoint, intent: Intent, run: ConstantCall) -> str:
    """Return why a run failed. Raises ChainUnavailableError where the node failed, and not the contract."""
    check_ran(endpoint, run)
    told = text_of(run.result.message)
    why = one_line(refusal_in(run.output)) or _VM_EXCEPTION.split(told)[-1] or "it fails"
    if _is_missing(run, told):
        why = "there is no contract of it"
    return f"the token {intent.token.symbol} refuses the transfer to {intent.to_address}: {why}"
