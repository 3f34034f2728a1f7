"""The values of sending: what is wanted, what must be sent for it, and what a node says of it.

How the gateway sends one thing::

    intent    a transfer that is wanted: from an address of ours, to anybody, so much of a token
    plan      the chain's step for it with the fee it may cost, and what the gateway's own funded address does for
              it before and after; or the reason why it cannot be
    prepare   a step and its sequence become the bytes to be signed, the *payload*
    sign      the gateway's signer reads the payload, judges it, and signs its digest
    seal      payload and signature become what is broadcast; its id is final before anything is sent
    store     the gateway commits it
    broadcast as often as needed: sending the same bytes twice is no error

The signer never sees a node and believes nobody: what it judges is what ``AddressFamily.effects`` reads out of the
payload itself.

What keeps a transfer from happening twice is the chain's own rule, and there are two kinds of chains. Where a sender's
transactions have a *sequence*, at most one of each number is ever mined, and one that waits is replaced under its
number. Where they have none, they *expire*: nothing is replaced, the same bytes are sent again until they are mined
or proven to be dead, and only then are others signed.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from .types import Token, Units

Action: TypeAlias = Literal["transfer", "nothing", "approve", "call", "lend", "reclaim", "stake", "unstake", "withdraw"]
"""What a transaction does. ``nothing`` only uses up a sequence: it is asked for, and on most chains written, as a
transfer of no native coin from the sender to itself. ``approve`` and ``call`` only on a chain that runs contracts, see
``cambist.plugin.calls``; those that follow only on one that lends, see ``cambist.plugin.lending``."""

GIVING: Final[frozenset[Action]] = frozenset({"transfer", "stake", "call"})
"""Actions by which the amount leaves the balance of the sender."""


class Fee(Struct, frozen=True, kw_only=True):
    """The most that a transaction may cost its sender.

    ``limit`` is in the chain's unit of work (gas), ``price`` the most paid per unit of work in the native coin's
    smallest unit, ``tip`` the part of the price meant for the block's maker, where the chain knows such a part;
    None makes a transaction of the kind without one. ``extra`` is a charge outside of limit and price, such as a
    rollup's fee for its data or the price of an account that comes into being, as an upper bound. ``price_now`` is
    the least price at which the next block takes it, where that is less than ``price``: the gateway may pay less
    headroom than the plan offers, never less than this. ``covered`` is how much of the limit the sender need not pay
    for, out of what it has staked or was lent. ``reserve`` is what it must hold beside, and keeps: without it the
    chain knows no such account. It is kept once, however many transactions name it. ``spare`` is more work, which it
    may come to by what others do meanwhile: the gateway allows it beside the limit where the sender holds what it would
    cost, and never brings it coin for that.
    """

    limit: int
    price: int
    tip: int | None = None
    extra: Units = Units(0)
    price_now: int | None = None
    covered: int = 0
    reserve: Units = Units(0)
    spare: int = 0

    @property
    def cost_max(self) -> Units:
        """The most that the sender pays for it, beside what it sends."""
        return self.cost_at(self.price)

    def cost_at(self, price: int) -> Units:
        """Return the most that the sender pays at another price."""
        return Units(max(0, self.limit - self.covered) * price + self.extra)


class Call(Struct, frozen=True, kw_only=True):
    """What is said to a contract. ``value`` is native coin that goes along; ``data`` is never empty."""

    to_address: str
    data: bytes
    value: Units = Units(0)


class Intent(Struct, frozen=True, kw_only=True):
    """A transaction that is wanted: a transfer, unless ``action`` says otherwise. Addresses are normalized.

    ``amount`` is above zero, but for ``nothing`` and for ``approve``, where ``to_address`` is who may take that much of
    the token: zero takes the permission back. With ``call`` it is what the call takes of the token, and ``call`` is the
    call itself. ``work_max`` is the most work that a transfer of native coin may take, where the recipient is a
    contract that runs: what takes more is refused. None is the chain's own bound, which is small: a stranger chooses
    the recipient. ``tag`` says for whom at the address it is, normalized, where the family has tags; None is none.

    ``recipient_may_empty``: before a transfer is mined its recipient may have sent away what it holds of the token, as
    exchanges do, and where a first balance takes more work than another, so much is allowed. It is said where what is
    not used stays with a sender that sends again. False allows for what the recipient holds now: what a one-time
    address is brought beyond that would lie there for good.
    """

    source: str
    to_address: str
    token: Token
    amount: Units
    action: Action = "transfer"
    work_max: int | None = None
    call: Call | None = None
    tag: str | None = None
    recipient_may_empty: bool = False

    def step(self, fee: Fee) -> Step:
        """Return the transaction that does just this, at this fee."""
        return Step(
            sender=self.source,
            to_address=self.to_address,
            token=self.token,
            amount=self.amount,
            fee=fee,
            action=self.action,
            call=self.call,
            tag=self.tag,
        )


class Step(Struct, frozen=True, kw_only=True):
    """One transaction: ``sender`` gives ``amount`` of the token to ``to_address`` and pays at most ``fee``.

    What it does instead, ``action`` says, as in an intent. ``public_key`` is the sender's, secp256k1's compressed form
    of 33 bytes: the gateway tells it when the step is prepared, where ``Chain.needs_public_key`` asks for that.
    """

    sender: str
    to_address: str
    token: Token
    amount: Units
    fee: Fee
    action: Action = "transfer"
    call: Call | None = None
    tag: str | None = None
    public_key: bytes | None = None

    @property
    def native_needed(self) -> Units:
        """What the sender must hold of the native coin."""
        given = self.amount if self.token.is_native and self.action in GIVING else 0
        return Units(self.fee.cost_max + self.fee.reserve + given)


class Plan(Struct, frozen=True, kw_only=True):
    """The transaction for an intent; or why it can never be sent as it stands; or why it costs too much for now.

    ``above_ceiling`` is the last, a sentence: this one transaction would cost more than the operator allows, and those
    planned beside it need not. Where the chain's price is too high for all of them, FeeAboveCeilingError says so. That
    the sender can pay is the gateway's care: it sends native coin there as ``step.fee`` needs it. ``loan`` is
    the stake that the sponsor lends the sender first, so that the fee is covered as the step says; it is given back
    afterwards. ``sponsoring`` is what all this costs the sponsor beside what it sends, as an upper bound.
    """

    step: Step | None = None
    refused: str | None = None
    above_ceiling: str | None = None
    loan: Units = Units(0)
    sponsoring: Units = Units(0)


class UnsignedTx(Struct, frozen=True, kw_only=True):
    """A step that waits for its signature. ``payload`` is exactly what will be signed.

    ``sequence`` is None exactly where transactions expire: there, ``valid_until`` is when it does, in seconds since
    1970 UTC. Whether the first block after that may still hold it is the chain's rule, and ``Chain.expired`` knows.
    """

    sender: str
    sequence: int | None
    payload: bytes
    fee: Fee
    valid_until: int | None = None


class Unprepared(Struct, frozen=True, kw_only=True):
    """A step that the chain knows to be impossible only when it is prepared. ``reason`` is a sentence."""

    reason: str


class SignedTx(Struct, frozen=True, kw_only=True):
    """What is broadcast: its id, as ``Transfer.tx_id`` will show it, and its bytes."""

    tx_id: str
    raw: bytes


class FoundTx(Struct, frozen=True, kw_only=True):
    """A transaction as its sender signed it, read back from the chain: waiting, or mined.

    Checked against itself: ``tx`` has the id that its bytes make, and the signature is ``sender``'s. ``payload`` is
    what was signed, ``fee`` the most that it may cost. Whether it is in a block, ``Chain.transaction`` tells.
    """

    tx: SignedTx
    sender: str
    sequence: int | None
    payload: bytes
    fee: Fee
    valid_until: int | None = None


class Movement(Struct, frozen=True, kw_only=True):
    """A transfer that a payload commands. ``source`` is None where it is the signer's own address."""

    contract: str | None
    recipient: str
    amount: Units
    source: str | None = None
    tag: str | None = None


class Staking(Struct, frozen=True, kw_only=True):
    """What a payload does with the signer's stake. ``borrower`` is who gets or loses the use of it, None for nobody."""

    action: Action
    amount: Units
    borrower: str | None = None


class Allowance(Struct, frozen=True, kw_only=True):
    """Permission that a payload gives: ``spender`` may take so much of the signer's tokens, and what it took counts."""

    contract: str
    spender: str
    amount: Units


class Effects(Struct, frozen=True, kw_only=True):
    """All that a payload can do to the money of who signs it.

    ``fee_max`` is the most that it lets the signer pay. ``delegate`` is the contract that gets power over the signing
    address, where the payload gives such power. ``call`` is a call that the family cannot read: whoever signs it must
    have read it otherwise, its value included, which is not among the movements. ``tx_id`` and ``valid_until`` are told
    exactly where payloads carry no sequence: the id that the transaction will have, and when it is dead.
    """

    movements: tuple[Movement, ...]
    fee_max: Units
    sequence: int | None
    delegate: str | None = None
    staking: Staking | None = None
    allowance: Allowance | None = None
    call: Call | None = None
    tx_id: str | None = None
    valid_until: int | None = None


class Dated(Struct, frozen=True, kw_only=True):
    """A transaction that can expire, and when it does."""

    tx_id: str
    valid_until: int


class Broadcast(Struct, frozen=True, kw_only=True):
    """What a node said to a transaction.

    ``accepted``: it is out, or was known already, which is the same. ``rejected``: this node will never take these
    bytes as things stand (``sequence_used`` says that its sequence is used up, perhaps by itself). ``underpriced``:
    it would take them for a higher fee. ``unfunded``: the sender cannot pay. ``expired``: by what this node knows
    their time is over, or what they refer to is not of its chain; which proves nothing. ``unknown``: nobody knows
    whether it is out: look it up by id, send the same bytes again, never sign anew.
    """

    state: Literal["accepted", "rejected", "sequence_used", "underpriced", "unfunded", "expired", "unknown"]
    reason: str = ""
