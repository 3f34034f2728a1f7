"""What can explain a difference between chain and books, in words for an operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_READ_LATE = (
    "A transfer stands in a block that the worker has passed without seeing it. Rescan the chain from before it."
)
_SENT_ELSEWHERE = (
    "Something was sent from one of the addresses with another wallet."
    " Switch payouts off until you know who has the key."
)
_TOKEN = "The token takes a fee of its own when it is moved, or changes balances by itself."  # noqa: S105  a coin
_NO_TRACES = "A contract paid the native coin, where no endpoint offers traces: such a payment is not seen."
_COUNTERFEIT = "Somebody sent coin to the address while nothing was watched for it there."

_MORE: Mapping[str, Sequence[str]] = {
    "deposits": (_READ_LATE,),
    "wallet": (_READ_LATE, _COUNTERFEIT),
    "gas": ("The gas station was filled before its books were opened, or by a contract.", _READ_LATE),
    "between_chains": ("A bridge has paid out or given back, and its exchange does not know yet. Look at exchanges.",),
}
_LESS: Mapping[str, Sequence[str]] = {
    "deposits": (_SENT_ELSEWHERE,),
    "wallet": (_SENT_ELSEWHERE,),
    "gas": ("A fee was paid that is not booked: a transaction that nobody follows any more.", _SENT_ELSEWHERE),
    "between_chains": ("A bridge was closed in the books, and its transaction has not left. Look at exchanges.",),
}


def explanations(group: str, difference: str, *, is_native: bool) -> Sequence[str]:
    """Return what could explain a difference of a group, the likeliest first. ``difference`` has a sign."""
    is_less = difference.startswith("-")
    found = [*(_LESS if is_less else _MORE).get(group, ())]
    if group == "between_chains":
        return found
    if is_less and not is_native:
        found.insert(0, _TOKEN)
    if not is_less and is_native:
        found.insert(0, _NO_TRACES)
    return found
