"""Contracts over HTTP: what a call would do and cost, transactions that call or create one, and what is known of it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from sha3 import keccak_256

from . import proto
from .asking import Answer, Ask, BadRequestError, Handler
from .builders import built, on_head
from .execution import internal_messages, log_message
from .machine import OUT_OF_ENERGY, REVERT, SUCCESS, Call, Moment, NoContractError, Outcome
from .params import TRX
from .refusals import RefusedError, invalid
from .schema import ENUMS
from .state import Contract
from .transactions import CREATE_CONTRACT, TRIGGER, Transaction

CONSTANT_ENERGY: Final = 100_000_000

_EXCEPTIONS: Final = {OUT_OF_ENERGY: "OutOfEnergyException", "OUT_OF_TIME": "OutOfTimeException"}


async def constant(ask: Ask) -> Answer:
    """Say what a call would do, on the state that this side of the node sees."""
    answer = proto.new("TransactionExtention")
    try:
        transaction = _trigger(ask)
        outcome = await _constant(ask, transaction)
    except RefusedError as error:
        return _refused(ask, error.code, error.reason)
    if outcome.status not in {SUCCESS, REVERT}:
        name = _EXCEPTIONS.get(outcome.status, "BytecodeExecutionException")
        return _refused(ask, "OTHER_ERROR", f"class org.tron.core.vm.program.Program${name} : {outcome.message}")
    answer.result.result = True
    answer.result.message = outcome.message.encode()
    answer.energy_used, answer.energy_penalty = outcome.energy_used, outcome.energy_penalty
    answer.constant_result.append(outcome.output)
    answer.logs.extend(log_message(log) for log in outcome.logs)
    answer.internal_transactions.extend(internal_messages(outcome, transaction.id))
    transaction.proto.ret.add(ret=ENUMS["CODE"]["SUCESS" if outcome.status == SUCCESS else "FAILED"])
    return {**ask.shown(answer), "transaction": built(ask, transaction)}


async def estimate(ask: Ask) -> Answer:
    """Say how much energy a call needs, found by halving in steps of one TRX as nodes do it, so a little too much."""
    try:
        if not ask.chain.estimates:
            raise invalid("this node does not support estimate energy")
        outcome = await _constant(ask, _trigger(ask))
    except RefusedError as error:
        return _refused(ask, error.code, error.reason)
    answer = proto.new("EstimateEnergyMessage")
    if outcome.status != SUCCESS:
        answer.result.code = ENUMS["RESPONSE_CODE"]["CONTRACT_EXE_ERROR"]
        answer.result.message = outcome.message.encode()
        return ask.shown(answer)
    price, high = ask.chain.parameters.energy_fee, ask.chain.parameters.fee_limit_max
    low = price * outcome.energy_used
    high = min(high, low * 2)
    while low + TRX < high:
        middle = (low + high) // 2
        enough = middle // price >= outcome.energy_used
        low, high = (low, middle) if enough else (middle, high)
    answer.result.result = True
    answer.energy_required = math.ceil(high / price)
    return ask.shown(answer)


def trigger(ask: Ask) -> Answer:
    """Build an unsigned transaction that calls a contract."""
    try:
        transaction = _trigger(ask, fee_limit=ask.number("fee_limit"))
        if ask.view.state.contract(transaction.held.contract_address) is None:
            raise invalid("No contract or not a valid smart contract")
    except RefusedError as error:
        return _refused(ask, error.code, error.reason)
    return {"result": {"result": True}, "transaction": built(ask, transaction)}


def deploy(ask: Ask) -> Answer:
    """Build an unsigned transaction that creates a contract."""
    owner = ask.address("owner_address")
    percent = ask.number("consume_user_resource_percent")
    abi = ask.values.get("abi")
    try:
        entries = proto.from_json("ABI", {"entrys": _entries(abi)})
        new = proto.new(
            "SmartContract", origin_address=owner, name=str(ask.values.get("name") or ""),
            bytecode=ask.hex("bytecode") + ask.hex("parameter"), call_value=ask.number("call_value"),
            consume_user_resource_percent=percent, origin_energy_limit=ask.number("origin_energy_limit"), abi=entries,
        )  # fmt: skip
    except (proto.MalformedError, ValueError) as error:
        raise BadRequestError("com.alibaba.fastjson.JSONException", str(error)) from error
    held = proto.new(CREATE_CONTRACT, owner_address=owner, new_contract=new)
    return built(ask, on_head(ask, CREATE_CONTRACT, held, fee_limit=ask.number("fee_limit")))


def contract(ask: Ask) -> Answer:
    found = _contract(ask)
    return ask.shown(_contract_message(found)) if found else {}


def contract_info(ask: Ask) -> Answer:
    """Tell of a contract, with its code, and by how many ten-thousandths its energy is dearer."""
    found = _contract(ask)
    if found is None:
        return {}
    message = proto.new("SmartContractDataWrapper", smart_contract=_contract_message(found), runtimecode=found.runtime)
    message.contract_state.energy_factor = ask.chain.machine.energy_factor(found.address[1:])
    message.contract_state.update_cycle = ask.view.head.timestamp_ms // 21_600_000
    return ask.shown(message)


def call_data(selector: str, parameter: str) -> bytes:
    """Return a call's data from a function's signature and its encoded arguments."""
    digest: bytes = keccak_256(selector.encode()).digest()
    return digest[:4] + bytes.fromhex(parameter)


def _trigger(ask: Ask, **raw: Any) -> Transaction:  # noqa: ANN401 - fields of Raw
    if not ask.values.get("owner_address"):
        raise RefusedError("OTHER_ERROR", "class java.security.InvalidParameterException : owner_address isn't set.")
    selector = str(ask.values.get("function_selector") or "")
    try:
        held = proto.from_json(TRIGGER, ask.values, visible=ask.visible)
        if selector:
            held.data = call_data(selector, str(ask.values.get("parameter") or ""))
    except ValueError as error:
        words = f"class org.tron.core.services.http.JsonFormat$ParseException : {error}"
        raise RefusedError("OTHER_ERROR", words) from error
    if not held.contract_address:
        raise RefusedError("OTHER_ERROR", "class java.security.InvalidParameterException : contract_address isn't set.")
    return on_head(ask, TRIGGER, held, **raw)


async def _constant(ask: Ask, transaction: Transaction) -> Outcome:
    held, head = transaction.held, ask.view.head
    if ask.view.state.contract(held.contract_address) is None:
        raise invalid("Smart contract is not exist.")
    caller = ask.view.state.account(held.owner_address)
    if held.call_value and caller is None:
        raise invalid("Validate InternalTransfer error, no OwnerAccount.")
    if caller is not None and held.call_value > caller.balance:
        raise invalid("Validate InternalTransfer error, balance is not sufficient.")
    moment = Moment(head.number, head.timestamp_ms, head.header.raw_data.witness_address[1:])
    call = Call(
        held.owner_address[1:], held.contract_address[1:], held.data, CONSTANT_ENERGY, call_value=held.call_value
    )
    try:
        return await ask.chain.machine.constant(call, moment, ask.view.mark)
    except NoContractError as error:
        raise invalid("Smart contract is not exist.") from error


def _refused(ask: Ask, code: str, reason: str) -> Answer:
    return {"result": {"code": code, "message": reason if ask.visible else reason.encode().hex()}}


def _entries(abi: Any) -> Any:  # noqa: ANN401 - JSON
    """Clients send the ABI as a text of JSON, or as JSON."""
    return msgspec.json.decode(abi or "[]") if isinstance(abi, str) else abi


def _contract(ask: Ask) -> Contract | None:
    return ask.view.state.contract(ask.address("value"))


def _contract_message(found: Contract) -> Any:  # noqa: ANN401 - messages are made at run time
    return proto.new(
        "SmartContract", origin_address=found.origin, contract_address=found.address, abi=proto.parse("ABI", found.abi),
        bytecode=found.bytecode, consume_user_resource_percent=found.consume_user_percent, name=found.name,
        origin_energy_limit=found.origin_energy_limit, code_hash=keccak_256(found.runtime).digest(), version=1,
    )  # fmt: skip


CALLS: Final[Mapping[str, Handler]] = {"triggerconstantcontract": constant, "estimateenergy": estimate}
"""On both sides of the node."""

FULL_NODE_CALLS: Final[Mapping[str, Handler]] = {
    "triggersmartcontract": trigger,
    "deploycontract": deploy,
    "getcontract": contract,
    "getcontractinfo": contract_info,
}
