"""What the API's description says of the audit log: sentences and values of its fields and parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ENTRIES = ("TrailEntry", "OwnTrailEntry")
_LISTS = ("listAuditEntries", "listOwnAuditEntries")

_ENTRY_WORDS = {
    "action": "What was done or refused, such as `payout.asked`.",
    "actor": "Who did it, by identifier; null for a stranger and for the gateway itself.",
    "actor_kind": "What did it: a member (`merchant`), a `key`, a `tracker`'s token, an `operator`, or none of these.",
    "actor_name": "The member's, the operator's or the key's name; null where there is none.",
    "address": "From where it was asked.",
    "count": "How many equal acts of a minute it stands for.",
    "details": "What was sent, and why it was refused. Never a secret.",
    "project_name": "The project's name.",
    "subject": "What it was about, by identifier.",
}
_LIST_WORDS = {
    "action": "The entries of this action.",
    "actorKind": "What was done by one of these.",
    "actor": "What was done by this one: an identifier.",
    "address": "What was asked from this address.",
    "project": "What concerns this project: an id.",
    "subject": "What was about this: an identifier.",
}
TRAIL_WORDS: Mapping[str, str] = {
    "TrailEntry.merchant_name": "The merchant's name.",
    "AuditVerification.agrees": "Whether nothing was changed, removed or added later.",
    "AuditVerification.compared_with_file": "Whether it was compared with a copy of the seals outside the database.",
    "AuditVerification.entries": "How many entries were compared.",
    "AuditVerification.problems": "What is wrong, a sentence each; 100 at most.",
    "AuditVerification.requested_by": "The operator who asked for it.",
    "AuditVerification.seals": "How many seals there are.",
    "AuditVerification.waiting": "How many entries have no seal yet.",
    **{f"{owner}.{name}": words for owner in _ENTRIES for name, words in _ENTRY_WORDS.items()},
    **{f"{owner}.{name}": words for owner in _LISTS for name, words in _LIST_WORDS.items()},
}
_VALUES = {
    "action": "payout.asked",
    "actor": "mem_4k2m7q",
    "actor_kind": "merchant",
    "actor_name": "Ada",
    "address": "203.0.113.7",
    "count": 1,
    "details": {"session": "ses_7q2m4k", "amount": "12.5"},
    "subject": "po_5n7y3w",
}
TRAIL_VALUES: Mapping[str, Any] = {
    "TrailEntry.entry_id": "1042",
    "AuditVerification.agrees": True,
    "AuditVerification.compared_with_file": True,
    "AuditVerification.entries": 1042,
    "AuditVerification.problems": [],
    "AuditVerification.requested_by": "opr_5k3j2h",
    "AuditVerification.seals": 87,
    "AuditVerification.waiting": 0,
    **{f"{owner}.{name}": value for owner in _ENTRIES for name, value in _VALUES.items()},
}
