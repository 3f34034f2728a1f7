"""What a node says to a transfer that is only tried: whether the contract refuses it, or the node could not try."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from cambist.plugin import ChainError, Intent, Units
from cambist_tron_node.faults import Face

from .local import Connect, Net, fee_of

BEHIND = web.RequestKey("behind", bool)

ASSERTING = bytes.fromhex("601c8060093d393df3") + bytes.fromhex(
    "60003560e01c63a9059cbb14602435151516601a5760206000f35bfe"
)
"""A token of which nobody has any, and whose transfer of anything ends in an invalid opcode, as old assertions do."""

VM = "class org.tron.core.vm.program.Program$"
OLD_VM = "class org.tron.common.runtime.vm.program.Program$"
VALIDATE, OTHER, EXECUTE = "CONTRACT_VALIDATE_ERROR", "OTHER_ERROR", "CONTRACT_EXE_ERROR"
NO_CALLS = "this node does not support constant"


async def test_a_token_that_asserts_is_planned_like_any_other(net: Net, connect: Connect) -> None:
    """Nodes tell of an invalid opcode as of an error of their own. What has yet to come is no reason to refuse."""
    token = await net.node.create(ASSERTING)
    async with connect(net.node.url, tokens=[{"symbol": "OLD", "contract": token, "decimals": 6}]) as chain:
        known = chain.info.token("OLD")
        assert known is not None
        intent = Intent(source=net.rich, to_address=net.customer, token=known, amount=Units(5))
        (plan,) = await chain.plan([intent], sponsor=None)
        assert plan.refused is None
        assert plan.step is not None
        assert plan.step.fee.limit > 0
        assert chain.endpoints()[0].failures == 0


class Answering(Face):
    """An address that answers so wherever a transfer is tried."""

    def __init__(self, net: Net, answer: dict[str, Any]) -> None:
        super().__init__(net.node.chain)
        self._answer = answer

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if "transfer" in body.get("function_selector", ""):
            return web.json_response(self._answer)
        return await super().before(path, body, request)


@pytest.mark.parametrize(
    "code, message, refused",
    [
        (VALIDATE, "Smart contract is not exist.", True),
        (VALIDATE, "No contract or not a valid smart contract", True),
        (VALIDATE, NO_CALLS, False),
        (VALIDATE, f"Contract validate error : {NO_CALLS}", False),
        (OTHER, f"{VM}OutOfTimeException : CPU timeout for 'JUMPDEST' operation executing", False),
        (EXECUTE, f"{OLD_VM}OutOfTimeException : CPU timeout for 'REVERT' operation executing", False),
        (None, "CPU timeout for 'JUMPDEST' operation executing", False),
        (None, "Already Time Out", False),
        (OTHER, f"{VM}JVMStackOverFlowException : StackOverflowError:", False),
        (OTHER, "class java.security.InvalidParameterException : owner_address isn't set.", False),
        (OTHER, "class java.lang.NullPointerException : null", False),
        (OTHER, f"{VM}BytecodeExecutionException : Invalid operation code: opCode[fe];", True),
        (OTHER, f"{VM}IllegalOperationException : Invalid operation code: opCode[fe];", True),
        (OTHER, f"{VM}OutOfEnergyException : Not enough energy for 'SSTORE' operation executing", True),
        (EXECUTE, f"{OLD_VM}BadJumpDestinationException : Operation with pc isn't 'JUMPDEST'", True),
        (None, "REVERT opcode executed", True),
        (None, "Not enough energy for 'JUMPDEST' operation executing", True),
    ],
)
async def test_only_what_the_contract_says_is_a_refusal(
    net: Net, code: str | None, message: str, refused: bool
) -> None:
    """Whatever else keeps a node from trying is an error: a payout that is refused has failed for good."""
    intent = net.intent(net.rich, net.customer, 5, "USDT")
    for told in (message, message.encode().hex()):
        result = {"result": True, "message": told} if code is None else {"code": code, "message": told}
        async with Answering(net, {"result": result}) as face, net.connected(face.url) as chain:
            if not refused:
                with pytest.raises(ChainError):
                    await chain.plan([intent], sponsor=None)
                continue
            (plan,) = await chain.plan([intent], sponsor=None)
            assert plan.refused is not None
            assert "class " not in plan.refused


@pytest.mark.parametrize(
    "used, penalty", [(0, 0), (-5, 0), (10**18, 0), (10**30, 10**29), (64_285, 64_285), (64_285, 10**9), (64_285, -1)]
)
async def test_energy_that_no_transfer_uses_is_believed_of_nobody(net: Net, used: int, penalty: int) -> None:
    """With a limit of nothing it would fail and be paid for; and nothing has ever used up so much."""
    answer = {"result": {"result": True}, "constant_result": [""], "energy_used": used, "energy_penalty": penalty}
    intent = net.intent(net.rich, net.customer, 5, "USDT")
    async with Answering(net, answer) as face:
        async with net.connected(face.url) as chain:
            with pytest.raises(ChainError, match="energy"):
                await chain.plan([intent], sponsor=None)
        async with net.connected(face.url, net.node.url) as chain:
            assert await chain.plan([intent], sponsor=None) == await net.chain.plan([intent], sponsor=None)


class Jumping(Face):
    """An address of several nodes: one that is behind tries transfers, so many times, another tells all the rest.

    What is solid is the same on all.
    """

    def __init__(self, net: Net, *, times: int) -> None:
        super().__init__(net.node.chain)
        self._times = times

    async def before(self, path: str, body: dict[str, Any], request: web.Request) -> web.StreamResponse | None:
        if path.startswith("wallet/") and "transfer" in body.get("function_selector", "") and self._times:
            self._times -= 1
            request[BEHIND] = True
        return await super().before(path, body, request)

    def lag(self, request: web.Request, head: int) -> int:
        return 2 if request.get(BEHIND) else super().lag(request, head)


@pytest.mark.parametrize("before, times", [(50, 10), (0, 1)])
async def test_a_node_that_has_not_heard_of_the_money_yet_refuses_nothing(net: Net, before: int, times: int) -> None:
    """Another behind the same address tells that it is there: a payout that is refused has failed for good."""
    wallet = await net.holder(before or 900)
    if before:
        await net.node.mine(20)
        await net.usdt.mint(wallet, Units(900))
        await net.node.mine()
    intent = net.intent(wallet, net.customer, 900, "USDT")
    async with Jumping(net, times=times) as face, net.connected(face.url) as chain:
        (plan,) = await chain.plan([intent], sponsor=net.sponsor)
    assert plan.refused is None
    assert fee_of(plan).limit >= fee_of((await net.chain.plan([intent], sponsor=net.sponsor))[0]).limit


async def test_what_the_token_refuses_is_refused_whether_the_money_is_new_or_not(net: Net) -> None:
    """Once it is solid by what is, and before by trying again."""
    wallet = await net.holder(900)
    await net.usdt.refuse(wallet)
    await net.node.mine()
    for _ in range(2):
        (plan,) = await net.chain.plan([net.intent(wallet, net.customer, 900, "USDT")], sponsor=None)
        assert plan.refused is not None
        await net.node.mine(25)
