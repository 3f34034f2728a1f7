"""Whether what an endpoint says of a span can be: link by link, and every transfer from one of its blocks."""

from __future__ import annotations

from msgspec import Struct

from cambist.plugin import InconsistentChainError, ScanResult, Span


class Scanned(Struct, frozen=True, kw_only=True):
    """A span that was read and checked.

    What transactions from ``known_xid`` on added was not surely known to the scan; None where it knew everything.
    What was added for any of the pasts that were begun by then, ``histories_begun`` in number, surely was.
    ``tokens_revision`` says which tokens it looked for.
    """

    result: ScanResult
    known_xid: int | None
    histories_begun: int
    tokens_revision: int = 0


def checked(result: ScanResult, span: Span, parent: str | None, last_hash: str) -> ScanResult:
    """Return a batch that leads link by link from the block before it to the block that was its aim.

    ``parent`` is the hash of the block before it, None where that is not known. What is returned is the gateway's own:
    a plugin may hand out what can be looked at once only, or what it empties for its next answer, and nothing of that
    may be lost on the way to the database. Raises InconsistentChainError.
    """
    result = ScanResult(blocks=tuple(result.blocks), transfers=tuple(result.transfers))
    if [block.height for block in result.blocks] != list(range(span.first, span.last + 1)):
        raise InconsistentChainError(f"blocks {span.first} to {span.last} were asked for, others were answered")
    hashes = {}
    for block in result.blocks:
        if parent is not None and block.parent_hash != parent:
            raise InconsistentChainError(f"block {block.height} does not follow the block before it")
        hashes[block.height] = parent = block.hash
    if parent != last_hash:
        raise InconsistentChainError(f"block {span.last} was replaced while it was read")
    seen = set()
    for transfer in result.transfers:
        if hashes.get(transfer.height) != transfer.block_hash:
            raise InconsistentChainError(f"transaction {transfer.tx_id} is from a block outside the scan")
        amount: object = transfer.amount  # a Struct takes whatever it is given
        if type(amount) is not int:
            raise InconsistentChainError(f"transaction {transfer.tx_id} moves {amount!r}, which is no whole number")
        if amount <= 0 or (transfer.tx_id, transfer.position) in seen:
            raise InconsistentChainError(f"transaction {transfer.tx_id} moves nothing, or the same twice")
        seen.add((transfer.tx_id, transfer.position))
    return result
