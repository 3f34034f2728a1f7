"""What a chain's author supplies so that the conformance kit can drive a network.

A harness over a node that runs only for the tests::

    class ExampleHarness(ChainHarness):
        abilities = Abilities(reorgs=True, reverts=True)

        def __init__(self, chain: Chain, node: ExampleNode) -> None:
            super().__init__(chain, ExampleFamily(), EXAMPLE_SAMPLES)
            self._node = node

        async def mine(self, blocks: int = 1) -> None:
            await self._node.call("example_mine", blocks)

        async def transfer(self, token: Token, recipient: str, amount: int) -> str:
            return await self._node.send(token.contract, recipient, amount)

        ...

The kit never asks which chain it drives, only what the harness says it can do: a test that needs an ability
which is not there is skipped, and the skip names the ability.
"""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec import Struct

from cambist.plugin import AddressFamily, Call, Chain, ChainInfo, Intent, Token

COINS_HELD = 100
"""What an account of the kit's tests holds of the native coin, in whole coins and beside what it must keep."""
UNITS_HELD = 10**9
"""The same in units, where a hundred coins are fewer: the kit's tests send some millions of them."""


class Abilities(Struct, frozen=True, kw_only=True):
    """What a harness can make its network do, or what the chain itself offers. All off unless stated.

    ``several_per_tx`` and ``several_native_per_tx``: one transaction with several transfers of a token, of the
    native coin. ``reverts``: a failed transfer that is still mined. ``impostors``: a contract that is not
    registered and calls itself like one that is. ``zero_transfers``: a transfer of nothing is mined.
    ``reorgs``: the newest blocks can be replaced; ``remines``: a transaction out of them can be mined again
    elsewhere. ``past_balances``: the node tells balances at a height. ``finality``: the head carries a
    finalized height, which mining raises. ``pending``: the node knows a transaction before it is mined. ``outages``:
    every endpoint can be made unreachable. ``refusals``: transfers of a token to one recipient can be made to fail.

    ``sending``: the chain can be sent on, from accounts whose keys the harness gives. It comes with one of two:
    ``sequences``: a sender's transactions are numbered without gaps; or ``expiry``: they have no numbers, and one that
    was not mined in time never is. The latter takes finality. ``replacement``: one that waits under its number can be
    replaced by another with a higher fee. ``payload_names_chain``: what is signed for one chain says so, and can be
    read for no other.
    ``fees_in_payload``: it names limit and price, whose product is the most that it can cost.

    ``activation``: an address can send nothing before it was sent native coin. ``lending``: the chain is a
    LendingChain, and lends. ``finding``: it finds transactions as they were signed. ``calls``: the chain is a
    ContractChain, and there is a contract to call. ``tags``: the family has tags, and transfers carry them.
    ``sweeping``: the chain is a SweepingChain whose sweeper is deployed, for ``SweepConformance``.
    """

    several_per_tx: bool = False
    several_native_per_tx: bool = False
    reverts: bool = False
    impostors: bool = False
    zero_transfers: bool = False
    reorgs: bool = False
    remines: bool = False
    past_balances: bool = False
    finality: bool = False
    pending: bool = False
    outages: bool = False
    sending: bool = False
    refusals: bool = False
    sequences: bool = False
    replacement: bool = False
    expiry: bool = False
    outputs: bool = False
    payload_names_chain: bool = False
    fees_in_payload: bool = False
    activation: bool = False
    lending: bool = False
    finding: bool = False
    calls: bool = False
    tags: bool = False
    sweeping: bool = False


class Sender(Struct, frozen=True, kw_only=True):
    """An account that the kit sends from: its normalized address, and its secp256k1 key, made for the test.

    The kit asks the chain for the sequence of its first transaction.
    """

    address: str
    private_key: bytes
    first_sequence: int = 0


class Callee(Struct, frozen=True, kw_only=True):
    """A contract that the kit calls, and the calls that it understands, whoever makes them.

    ``address`` is normalized. ``take`` takes so much of the registered ``token`` from whoever calls and has allowed
    that: it leaves two logs or more, only the last of them its own, with two topics or more, which differ for other
    callers and other amounts. ``pay`` keeps so much native coin, which goes along. ``refuse`` fails, and says
    ``reason``.
    """

    address: str
    token: Token
    take: Callable[[int], Call]
    pay: Callable[[int], Call]
    refuse: Call
    reason: str


class FamilySamples(Struct, frozen=True, kw_only=True):
    """Texts that show what an address family accepts and what it refuses.

    ``account_xpubs``: at least two account-level extended public keys. ``spellings``: every accepted way to
    write an address, with its normalized form. ``refused``: near misses that are no address, such as a wrong
    checksum, one character too few, or another family's address. ``chain``: a chain of the family, for payment
    URIs. ``tags`` and ``refused_tags``: the same of tags, where the family has some. ``derived``: known answers from
    another implementation, as ``(xpub, change, index) -> address``.
    """

    account_xpubs: Sequence[str]
    spellings: Mapping[str, str]
    refused: Sequence[str]
    chain: ChainInfo
    tags: Mapping[str, str] = {}
    refused_tags: Sequence[str] = ()
    derived: Mapping[tuple[str, int, int], str] = {}


class ChainHarness(ABC):
    """One network under the kit's control, with a funded sender, and the plugin's chain connected to it.

    Each test gets a network of its own, or one that no other test uses at the same time. Nothing is mined but
    by these methods.
    """

    abilities: Abilities = Abilities()

    sequence_max: int = 2**63 - 1
    """The largest sequence that a transaction can have."""

    def __init__(self, chain: Chain, family: AddressFamily, samples: FamilySamples) -> None:
        """Take recipients from the first xpub of the samples."""
        self.chain = chain
        self.family = family
        self.samples = samples
        self._indexes = itertools.count(1000)

    def fresh_address(self) -> str:
        """Return a normalized address of the family that was never used on this network by this harness."""
        return self.family.derive_address(self.samples.account_xpubs[0], 0, next(self._indexes))

    def units_max(self, token: Token) -> int:
        """Return the largest amount of the token that a transaction can name."""
        del token
        return 2**256 - 1

    async def coins_held(self) -> int:
        """Return how much native coin an account that the kit sends from is given, in the smallest unit.

        Enough for all that one test sends, also of a coin with few decimals or of which little does not arrive, and for
        what a new account must keep beside its fees, which the chain itself says. Override it where fees need more than
        a hundred coins, or where so many are more than there are.
        """
        native = self.chain.info.native
        held: int = max(COINS_HELD * 10**native.decimals, UNITS_HELD) + COINS_HELD * (native.least_units - 1)
        if not self.abilities.activation:
            return held
        first = Intent(
            source=self.fresh_address(), to_address=self.fresh_address(), token=native, amount=native.least_units
        )
        (plan,) = await self.chain.plan([first], sponsor=None)
        return held + (plan.step.fee.reserve if plan.step is not None else 0)

    @abstractmethod
    async def mine(self, blocks: int = 1) -> None:
        """Mine so many blocks; waiting transactions go into the first, in the order they were made."""

    @abstractmethod
    async def transfer(self, token: Token, recipient: str, amount: int) -> str:
        """Send the amount of a registered token in a transaction of its own, and return the transaction's id.

        Where the network lets a sender say how much work there is, a plain transfer is given no more than it takes to
        an address that nobody used. It waits for ``mine``. With ability ``zero_transfers`` the amount may be zero.
        """

    async def transfer_many(self, token: Token, payments: Sequence[tuple[str, int]]) -> str:
        """Send all (recipient, amount) in one transaction, in this order; a recipient may be repeated."""
        raise NotImplementedError(_missing("transfer_many", "several_per_tx"))

    async def transfer_reverted(self, token: Token, recipient: str, amount: int) -> str:
        """Send a transfer that will be mined as failed, moving nothing but the fee."""
        raise NotImplementedError(_missing("transfer_reverted", "reverts"))

    async def transfer_impostor(self, token: Token, recipient: str, amount: int) -> str:
        """Send a token of an unregistered contract that has the registered token's symbol and decimals."""
        raise NotImplementedError(_missing("transfer_impostor", "impostors"))

    async def reorg(self, depth: int) -> None:
        """Replace the newest blocks by at least as many others; their transactions are gone for good."""
        raise NotImplementedError(_missing("reorg", "reorgs"))

    async def remine(self, depth: int, tx_id: str) -> None:
        """Replace the newest blocks by at least as many others, and mine this one of their transactions again.

        It keeps its id and stands in another block, at another height where the chain allows it, and behind
        another transaction with transfers, so that a block-wide index of it changes. The other transactions are
        gone for good.
        """
        raise NotImplementedError(_missing("remine", "remines"))

    async def sender(self, *holdings: tuple[Token, int]) -> Sender:
        """Return an account that never sent anything, and holds exactly these amounts, in mined blocks."""
        raise NotImplementedError(_missing("sender", "sending"))

    async def outlive(self, valid_until: int) -> None:
        """Let the network's time pass until its newest block is later than this, in as few blocks as can be."""
        raise NotImplementedError(_missing("outlive", "expiry"))

    async def lose_next(self) -> None:
        """Make the network accept the next transaction that is broadcast, and then never hear of it again."""
        raise NotImplementedError(_missing("lose_next", "expiry"))

    async def hide(self, tx_id: str) -> None:
        """Make every endpoint know nothing of a mined transaction when it is asked for by its id."""
        raise NotImplementedError(_missing("hide", "expiry"))

    async def sponsor(self) -> Sender:
        """Return an account with native coin, and a stake that covers at least three transfers of any token."""
        raise NotImplementedError(_missing("sponsor", "lending"))

    async def ripen(self) -> None:
        """Let so much time pass that all that was unstaked can be withdrawn, and mine a block."""
        raise NotImplementedError(_missing("ripen", "lending"))

    async def callee(self) -> Callee:
        """Return a contract that stands in a mined block, and that nobody has allowed anything."""
        raise NotImplementedError(_missing("callee", "calls"))

    async def sweep_sponsor(self) -> Sender:
        """Return the account that the chain's sweeper obeys, with native coin for more sweeps than any test makes."""
        raise NotImplementedError(_missing("sweep_sponsor", "sweeping"))

    async def refuse(self, recipient: str) -> Token:
        """Make some token's transfers to this fresh address fail from now on, and return which token's."""
        raise NotImplementedError(_missing("refuse", "refusals"))

    def outage(self) -> AbstractAsyncContextManager[None]:
        """Make every endpoint of the chain unreachable until the context ends."""
        raise NotImplementedError(_missing("outage", "outages"))


def _missing(method: str, ability: str) -> str:
    return f"a harness with the ability {ability!r} implements {method}()"
