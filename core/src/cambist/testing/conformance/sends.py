"""How the kit's tests send: accounts with money, plans, signatures."""

from __future__ import annotations

from collections.abc import Sequence

from coincurve import PrivateKey
from msgspec import structs

from cambist.plugin import (
    Action,
    Broadcast,
    ChainUnavailableError,
    Intent,
    Plan,
    SignedTx,
    Step,
    Token,
    TxStatus,
    Units,
    Unprepared,
    UnsignedTx,
)
from cambist.testing.harness import ChainHarness, Sender

from .helpers import needs


async def funded(harness: ChainHarness, *holdings: tuple[Token, int]) -> Sender:
    """Return an account that holds these, and native coins for more fees than any test pays."""
    needs(harness, "sending")
    sender = await harness.sender((harness.chain.info.native, await harness.coins_held()), *holdings)
    return structs.replace(sender, first_sequence=await harness.chain.next_sequence(sender.address) or 0)


async def planned(
    harness: ChainHarness, sender: Sender, token: Token, amount: int, to_address: str | None = None
) -> Step:
    """Return the step for a transfer; to an address that nobody used unless it is named."""
    wanted = an_intent(sender, to_address or harness.fresh_address(), token, amount)
    (plan,) = await harness.chain.plan([wanted], sponsor=None)
    return step_of(plan)


def an_intent(sender: Sender, to_address: str, token: Token, amount: int, action: Action = "transfer") -> Intent:
    """Return what is wanted of a sender."""
    return Intent(source=sender.address, to_address=to_address, token=token, amount=Units(amount), action=action)


def step_of(plan: Plan) -> Step:
    """Return the step of a plan that must not be refused."""
    assert plan.refused is None, plan.refused
    assert plan.step is not None
    return plan.step


async def prepared(harness: ChainHarness, sender: Sender, step: Step, sequence: int | None = None) -> UnsignedTx:
    """Return what is signed, under the sender's next sequence unless one is named, counted from its first."""
    if sequence is None:
        number = await harness.chain.next_sequence(sender.address)
    else:
        number = sender.first_sequence + sequence
    (unsigned,) = await all_prepared(harness, sender, [(step, number)])
    return unsigned


async def all_prepared(
    harness: ChainHarness, sender: Sender, steps: Sequence[tuple[Step, int | None]]
) -> Sequence[UnsignedTx]:
    """Return what is signed, each step under its sequence; none of them may turn out to be impossible."""
    return await prepared_as_told(harness, [(with_key(harness, sender, step), number) for step, number in steps])


def with_key(harness: ChainHarness, sender: Sender, step: Step) -> Step:
    """Return the step as the gateway has it prepared: with the sender's public key, where the chain needs that."""
    if not harness.chain.needs_public_key:
        return step
    return structs.replace(step, public_key=PrivateKey(sender.private_key).public_key.format())


async def prepared_as_told(harness: ChainHarness, steps: Sequence[tuple[Step, int | None]]) -> Sequence[UnsignedTx]:
    """Return what is signed for steps that have all that the chain needs."""
    found = await harness.chain.prepare(steps)
    possible = [one for one in found if isinstance(one, UnsignedTx)]
    assert len(possible) == len(found) == len(steps)
    return possible


async def cannot_be_prepared(harness: ChainHarness, sender: Sender, step: Step) -> None:
    """Check that nothing is prepared for a sender whose money is not there: now, or as it stands."""
    try:
        (found,) = await harness.chain.prepare([(with_key(harness, sender, step), None)])
    except ChainUnavailableError:
        return
    assert isinstance(found, Unprepared)


def signature_of(harness: ChainHarness, unsigned: UnsignedTx, private_key: bytes) -> bytes:
    """Sign as the gateway does."""
    return PrivateKey(private_key).sign_recoverable(harness.family.digest(unsigned.payload), hasher=None)


def sealed(harness: ChainHarness, unsigned: UnsignedTx, sender: Sender) -> SignedTx:
    """Return what is broadcast."""
    return harness.family.seal(unsigned, signature_of(harness, unsigned, sender.private_key))


async def signed(harness: ChainHarness, sender: Sender, step: Step, sequence: int | None = None) -> SignedTx:
    """Return a step as what is broadcast."""
    return sealed(harness, await prepared(harness, sender, step, sequence), sender)


async def told(harness: ChainHarness, tx: SignedTx) -> Broadcast:
    """Broadcast one transaction, and return what came of it."""
    (answer,) = await harness.chain.broadcast([tx])
    return answer


async def mined(harness: ChainHarness, *txs: SignedTx) -> TxStatus:
    """Broadcast transactions that must be accepted, mine them, and return what became of the last."""
    answers = await harness.chain.broadcast(txs)
    assert [answer.state for answer in answers] == ["accepted"] * len(txs), answers
    await harness.mine()
    return (await harness.chain.transactions([tx.tx_id for tx in txs]))[-1]


async def native_of(harness: ChainHarness, sender: Sender) -> int:
    """Return what the account holds of the native coin."""
    return await harness.chain.balance(sender.address, harness.chain.info.native)
