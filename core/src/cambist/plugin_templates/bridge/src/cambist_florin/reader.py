"""What a call does: the part that the signer believes, and that nobody can talk into anything. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from cambist.plugin import Call, CallReader, ChainInfo, ExchangeEffects, Units, UnreadablePayloadError

from . import codec


class FlorinReader(CallReader):
    """Reads calls of the pinned contracts, and of no other."""

    def __init__(self, contracts: Mapping[str, str]) -> None:
        self.contracts = contracts

    def spenders(self, chain: ChainInfo) -> frozenset[str]:
        """Return the contract, which takes what it is allowed to take."""
        return frozenset({self.contracts[chain.id]} if chain.id in self.contracts else ())

    def read(
        self,
        chain: ChainInfo,
        sender: str,
        call: Call,
        chains: Mapping[str, ChainInfo],
    ) -> ExchangeEffects | None:
        """Return all that the call can do. What it takes, it takes from the sender, to whom it may come back."""
        contract = self.contracts.get(chain.id)
        if contract is None or call.to_address != contract:
            return None
        said = codec.read(call.data)
        # More would stay with the contract, less would fail.
        if call.value != (said.units if said.sells is None else 0):
            raise UnreadablePayloadError("the native coin that goes along is not what is sold")
        return ExchangeEffects(
            sold_contract=said.sells,
            sold=Units(said.units),
            spender=None if said.sells is None else contract,
            chain=self.numbered(said.to_chain, chains).id,
            bought_contract=said.buys,
            bought_min=Units(said.units_out),
            recipient=said.recipient,
            refund_to=sender,
            valid_until=said.deadline,
        )

    def numbered(self, number: int, chains: Mapping[str, ChainInfo]) -> ChainInfo:
        """Return the chain of this number that has a contract, too. Raises UnreadablePayloadError."""
        for chain in chains.values():
            if chain.chain_id_num == number and chain.is_evm and chain.id in self.contracts:
                return chain
        raise UnreadablePayloadError(f"no chain that is served has the number {number}")
