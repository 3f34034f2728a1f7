"""Which errors each operation can answer, for the API's description: by status, with their codes and an example."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from cambist.services.identity.team import MEMBER_ROLES
from cambist_web.auth import ADMIN_SCHEME, API_KEY_SCHEME, OPERATOR_SCHEME, SESSION_SCHEME, STEP_UP, TRACKER_SCHEME
from cambist_web.errors import HTTP_ERRORS
from cambist_web.permissions import MEMBER_PERMISSIONS, PERMISSION, PERMISSIONS, READ, SCOPE, member_permission_of

from .admin import ADMIN_ERRORS
from .merchants import MERCHANT_ERRORS
from .overviews import OVERVIEW_ERRORS
from .queue import QUEUE_ERRORS
from .webhooks import WEBHOOK_ERRORS

_OF_SCHEME: Mapping[str, Mapping[int, Sequence[str]]] = {
    API_KEY_SCHEME: {
        401: ["API_KEY_MISSING", "API_KEY_INVALID", "API_KEY_EXPIRED"],
        403: ["MERCHANT_SUSPENDED", "IP_NOT_ALLOWED", "SCOPE_MISSING"],
    },
    SESSION_SCHEME: {401: ["SESSION_REQUIRED", "INVALID_TOKEN", "SESSION_ENDED"]},
    ADMIN_SCHEME: {401: ["ADMIN_KEY_INVALID"]},
    OPERATOR_SCHEME: {401: ["SESSION_REQUIRED", "INVALID_TOKEN", "SESSION_ENDED"]},
    TRACKER_SCHEME: {401: ["AUTH_TOKEN_MISSING", "AUTH_TOKEN_INVALID"], 403: ["MERCHANT_SUSPENDED"]},
}
_OF_BODY: Mapping[int, Sequence[str]] = {
    400: ["INVALID_JSON"],
    408: ["REQUEST_TIMEOUT"],
    413: ["BODY_TOO_LARGE"],
    415: ["UNSUPPORTED_MEDIA_TYPE"],
    429: ["TOO_MANY_UNFINISHED"],
}
_OF_LIVE: Mapping[int, Sequence[str]] = {403: ["LIVE_NOT_GRANTED"]}
"""Of what needs a scope that is not for reading."""
_OF_STEP_UP: Mapping[int, Sequence[str]] = {403: ["STEP_UP_REQUIRED", "TWO_FACTOR_REQUIRED"]}
_OF_ACTIVE: Mapping[int, Sequence[str]] = {403: ["PROJECT_INACTIVE", "MERCHANT_SUSPENDED"]}
"""Of what does something for a project, wherever a project that is switched off is read alone."""
_OF_PROJECT: Mapping[int, Sequence[str]] = {
    403: ["PROJECT_NOT_OWNED", "PROJECT_NOT_OPEN"],
    404: ["PROJECT_NOT_FOUND"],
}

_IS_ACTIVE = re.compile(
    r"^/api/(account|payment|events|sandbox|webhook|merchant/(wallet|swap-bridge|resolutions|usage)|dashboard/projects)(/|$)"
)

_PRICED = ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN", "INVALID_AMOUNT", "UNSUPPORTED_CURRENCY"]
_REPEATED = ["IDEMPOTENCY_KEY_REUSED", "IDEMPOTENCY_KEY_OTHER_PROJECT"]
_COVERED = [*_OF_ACTIVE[403], "INSUFFICIENT_BALANCE", "INSUFFICIENT_CPT", "RECEIVABLE_OUTSTANDING"]
_SENT = [*_COVERED, "PAYOUT_LIMIT_EXCEEDED", "TARGET_NOT_ALLOWED"]
_SENT_TO = [
    "INVALID_ADDRESS",
    "TARGET_IS_CONTRACT",
    "TAG_NOT_SUPPORTED",
    "INVALID_TAG",
    "INVALID_AMOUNT",
    "PAYOUT_BELOW_MINIMUM",
    "IDEMPOTENCY_KEY_MISMATCH",
]
_AWAY = ["PAYOUT_DISABLED", "CHAIN_UNAVAILABLE", "KEYS_UNAVAILABLE"]
_CODE = {403: ["TWO_FACTOR_NOT_ENROLLED", "TWO_FACTOR_REQUIRED", "TWO_FACTOR_INVALID"], 429: ["TOO_MANY_CODES"]}
_SHOWN = {503: ["ADDRESS_NOT_VERIFIED"]}
_GIVEN = {400: ["UNSUPPORTED_CHAIN"], 503: ["CHAIN_UNAVAILABLE", "KEYS_UNAVAILABLE", "ADDRESS_NOT_VERIFIED"]}
"""Of what gives an account addresses."""
_SWAPPED = [
    "INVALID_PAYOUT_MODE",
    "TOKEN_NOT_ENABLED",
    "SWAP_NOT_SUPPORTED_FOR_CHAIN",
    "SWAP_IN_PAYOUT_DISABLED",
    "UNSUPPORTED_CHAIN",
    "UNSUPPORTED_TOKEN",
]

_OFFERED = [
    "PAIR_NOT_SUPPORTED",
    "EXCHANGE_AMOUNT_TOO_LOW",
    "EXCHANGE_AMOUNT_TOO_HIGH",
    "EXCHANGE_NO_LIQUIDITY",
    "EXCHANGE_REFUSED",
    "EXCHANGE_PRICE_UNKNOWN",
    "PRICE_BELOW_GUARD",
]
_NOT_OFFERED = ["SWAP_DISABLED", "BRIDGE_DISABLED", "EXCHANGE_UNAVAILABLE", "RATE_UNAVAILABLE"]
_EXCHANGED = {
    400: [
        "UNSUPPORTED_CHAIN",
        "UNSUPPORTED_TOKEN",
        "INVALID_AMOUNT",
        "SWAP_NOT_SUPPORTED_FOR_CHAIN",
        "TOKEN_NOT_ENABLED",
        *_OFFERED,
    ],
    503: ["EXCHANGE_UNAVAILABLE", "RATE_UNAVAILABLE", "CHAIN_UNAVAILABLE", "KEYS_UNAVAILABLE"],
}
_TAKEN = {400: ["IDEMPOTENCY_KEY_MISMATCH"], 403: ["INSUFFICIENT_BALANCE", "RECEIVABLE_OUTSTANDING"], 409: _REPEATED}

_OF_NOUN: Sequence[tuple[re.Pattern[str], str, Mapping[int, Sequence[str]]]] = tuple(
    (re.compile(path), method, codes)
    for path, method, codes in (
        *QUEUE_ERRORS,
        (r"/(payment|payments)(/quote)?$", "post", {400: [*_PRICED, "TOKEN_NOT_ENABLED"]}),
        (r"/(payment|payments)(/quote)?$", "post", {503: ["RATE_UNAVAILABLE", "CHAIN_UNAVAILABLE"]}),
        (r"/(payment|payments)$", "post", {400: ["IDEMPOTENCY_KEY_MISMATCH"], 409: _REPEATED}),
        (r"/(payment|payments)$", "post", {503: ["KEYS_UNAVAILABLE"]}),
        (r"/(payment|payments)$", "get", {400: ["INVALID_AMOUNT"]}),
        (r"/(payment|payments)(/\{paymentId\}(/recalculate)?)?$", "", _SHOWN),
        (r"\{publicId\}|/sandbox/deposit$", "", _SHOWN),
        (r"\{paymentId\}|/payment/public/\{publicId\}", "", {404: ["PAYMENT_NOT_FOUND"]}),
        (r"/account/\{publicId\}", "", {404: ["ACCOUNT_NOT_FOUND"]}),
        (r"/accounts?$", "post", _GIVEN),
        (r"/accounts?$", "get", {404: ["ACCOUNT_NOT_FOUND"], **_SHOWN}),
        (r"\{accountId\}", "", {404: ["ACCOUNT_NOT_FOUND"]}),
        (r"\{accountId\}(/activate|/deactivate|/deposits)?$", "", _SHOWN),
        (r"\{accountId\}/chains$", "post", _GIVEN),
        (r"/resolutions(/\{depositId\}(/accept|/release)?)?$", "", _SHOWN),
        (r"/recalculate$", "post", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN", "TOKEN_NOT_ENABLED"]}),
        (r"/recalculate$", "post", {503: ["RATE_UNAVAILABLE", "CHAIN_UNAVAILABLE"]}),
        (r"/recalculate$", "post", {409: ["PAYMENT_NOT_FIAT", "PAYMENT_NOT_EXPIRED", "NOTHING_REMAINS"]}),
        (r"/recalculate$", "post", {409: ["MONEY_SET_ASIDE", "AMOUNT_TOO_LARGE", "AMOUNT_TOO_SMALL"]}),
        (r"\{paymentId\}/refund$", "post", {400: _SENT_TO, 403: _SENT, 503: _AWAY}),
        (r"\{paymentId\}/refund$", "post", {409: ["PAYMENT_NOT_REFUNDABLE", "REFUND_EXCEEDS_RECEIVED", *_REPEATED]}),
        (r"\{refundId\}", "", {404: ["REFUND_NOT_FOUND"]}),
        (r"\{(payoutId|refundId|withdrawalId|intentId)\}/cancel$", "post", {409: ["ALREADY_SENT", "ALREADY_ENDED"]}),
        (r"\{depositId\}", "", {404: ["DEPOSIT_NOT_FOUND"]}),
        (r"\{depositId\}/", "post", {409: ["NOT_RESOLVABLE", "ALREADY_RESOLVED"]}),
        (r"\{depositId\}/accept$", "post", {409: ["CANNOT_ACCEPT"]}),
        (r"\{depositId\}/refund$", "post", {400: _SENT_TO, 403: _SENT, 503: _AWAY}),
        (r"\{depositId\}/refund$", "post", {409: ["REFUND_EXCEEDS_HELD", *_REPEATED]}),
        (r"/wallet/payout$", "post", {400: [*_SWAPPED, *_SENT_TO], 403: _SENT, 409: _REPEATED, 503: _AWAY}),
        (r"/swap-bridge/(swap|bridge)/", "post", _EXCHANGED),
        (r"/swap-bridge/(swap/quote|swap/execute|bridge/execute)$", "post", {402: ["INSUFFICIENT_CPT"]}),
        (r"/swap-bridge/pairs$", "get", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN"]}),
        (r"/swap-bridge/swap/", "post", {503: ["SWAP_DISABLED"]}),
        (r"/swap-bridge/bridge/", "post", {503: ["BRIDGE_DISABLED"]}),
        (r"/swap-bridge/(swap|bridge)/execute$", "post", _TAKEN),
        (r"\{txnId\}", "", {404: ["EXCHANGE_NOT_FOUND"]}),
        (r"/wallet/payout$", "post", {400: _OFFERED, 503: _NOT_OFFERED}),
        (r"/wallet/coins", "p", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN"]}),
        (r"/wallet/coins/.*/settings$", "patch", {400: ["TOKEN_NOT_ENABLED"], 403: ["ADDRESS_NOT_APPROVED"]}),
        (r"/wallet/transactions.csv$", "get", {400: ["EXPORT_TOO_LARGE"]}),
        (r"/wallet/payout/batch(/check)?$", "post", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN"]}),
        (r"/wallet/payout/batch(/check)?$", "post", {400: ["TOKEN_NOT_ENABLED"], 503: _AWAY}),
        (r"/wallet/payout/batch$", "post", {400: ["BATCH_REJECTED", "IDEMPOTENCY_KEY_MISMATCH"]}),
        (r"/wallet/payout/batch$", "post", {403: _COVERED, 409: _REPEATED, 503: _AWAY}),
        (r"\{payoutId\}", "", {404: ["PAYOUT_NOT_FOUND"]}),
        (r"/wallet/addresses$", "get", {503: ["KEYS_UNAVAILABLE"]}),
        (r"/wallet/coins/.*/settings$", "patch", {400: ["INVALID_AMOUNT", "INVALID_ADDRESS", "INVALID_TAG"]}),
        (r"/wallet/coins/.*/settings$", "patch", {400: ["TARGET_IS_CONTRACT"]}),
        (r"/wallet/coins/.*/settings$", "patch", {400: ["SWAP_NOT_SUPPORTED_FOR_CHAIN"], 409: ["AUTO_CONVERT_CIRCLE"]}),
        (r"/wallet/transactions(.csv)?$", "get", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN"]}),
        (r"/wallet/balance$", "get", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN"]}),
        (r"/dashboard/withdrawals$", "post", _CODE),
        (r"/dashboard/approved-addresses$", "post", _CODE),
        (r"/dashboard/approved-addresses$", "post", _OF_LIVE),
        (r"/dashboard/approved-addresses$", "post", {400: ["INVALID_ADDRESS", "INVALID_TAG", "UNSUPPORTED_CHAIN"]}),
        (r"/dashboard/approved-addresses$", "post", {400: ["TARGET_IS_CONTRACT"]}),
        (r"/dashboard/approved-addresses$", "post", {409: ["TOO_MANY_APPROVED_ADDRESSES"]}),
        (r"\{approvalId\}", "", {404: ["APPROVED_ADDRESS_NOT_FOUND"]}),
        (r"/dashboard/withdrawals$", "post", {400: ["UNSUPPORTED_CHAIN", "UNSUPPORTED_TOKEN"]}),
        (r"/dashboard/withdrawals$", "post", {403: ["PROJECT_NOT_OWNED", "PROJECT_NOT_OPEN"]}),
        (r"/dashboard/withdrawals$", "post", {404: ["PROJECT_NOT_FOUND"]}),
        (r"/dashboard/withdrawals$", "post", {400: _SENT_TO, 403: _SENT, 409: _REPEATED, 503: _AWAY}),
        (r"\{withdrawalId\}", "", {404: ["WITHDRAWAL_NOT_FOUND"]}),
        (r"/(webhook/create|trackers)$", "post", {400: ["UNSUPPORTED_CHAIN"], 403: ["PLAN_LIMIT"]}),
        (r"/(webhook/create|trackers)$", "post", {409: ["TOO_MANY_TRACKERS"], 503: ["CHAIN_UNAVAILABLE"]}),
        (r"/webhook/create$", "post", {403: ["PROJECT_NOT_OWNED", "PROJECT_NOT_OPEN"]}),
        (r"/webhook/create$", "post", {404: ["PROJECT_NOT_FOUND", "MERCHANT_NOT_FOUND"]}),
        (r"/webhook/(update|address/add)$", "post", {403: ["PLAN_LIMIT"], 409: ["TOO_MANY_ADDRESSES"]}),
        (r"/(webhook|\{webhookId\})/activate$", "post", {403: ["PLAN_LIMIT"]}),
        (r"\{webhookId\}", "", {404: ["TRACKER_NOT_FOUND"]}),
        (r"/webhook/address/(add|update|remove)$", "post", {400: ["INVALID_ADDRESS"]}),
        (r"/webhook/address/(update|remove)$", "post", {404: ["ADDRESS_NOT_WATCHED"]}),
        (r"/webhook/(address|transaction)/list$", "get", {400: ["INVALID_ADDRESS"]}),
        (r"^/health/ready$", "get", {503: ["NOT_READY"]}),
        (r"/public/tokens$", "get", {400: ["UNSUPPORTED_CHAIN"]}),
        (r"/sandbox/", "post", {400: ["UNSUPPORTED_CHAIN"], 403: ["SANDBOX_ONLY"]}),
        (r"/sandbox/(deposit|mine|reorg|advance-time|fail-exchange)$", "post", {503: ["SANDBOX_BUSY"]}),
        (r"/sandbox/(deposit|mine|reorg)$", "post", {503: ["SANDBOX_NOT_BEGUN"]}),
        (r"/sandbox/deposit$", "post", {400: ["UNSUPPORTED_TOKEN", "INVALID_AMOUNT", "INVALID_ADDRESS"]}),
        (r"/sandbox/deposit$", "post", {404: ["PAYMENT_NOT_FOUND", "ACCOUNT_NOT_FOUND"]}),
        (r"/sandbox/reorg$", "post", {400: ["REORG_TOO_DEEP"]}),
        (r"/sandbox/fail-payout$", "post", {404: ["PAYOUT_NOT_FOUND"], 409: ["PAYOUT_ALREADY_MINED"]}),
        (r"/sandbox/fail-exchange$", "post", {404: ["EXCHANGE_NOT_FOUND"], 409: ["EXCHANGE_ALREADY_MINED"]}),
        *WEBHOOK_ERRORS,
        (r"\{keyId\}", "", {404: ["API_KEY_NOT_FOUND"]}),
        (r"/api-keys$", "post", {409: ["TOO_MANY_API_KEYS"]}),
        (r"/merchant/projects$", "post", {409: ["TOO_MANY_PROJECTS"]}),
        (r"^/api/auth/(register|login|refresh|logout|password-reset/\w+)$", "", {403: ["OTHER_SITE"]}),
        (r"/auth/register$", "post", {403: ["REGISTRATION_CLOSED"], 409: ["EMAIL_TAKEN"], 503: ["KEYS_UNAVAILABLE"]}),
        (r"/auth/login$", "post", {401: ["INVALID_CREDENTIALS", "TWO_FACTOR_REQUIRED", "TWO_FACTOR_INVALID"]}),
        (r"/auth/login$", "post", {429: ["TOO_MANY_CODES"]}),
        (r"/auth/step-up$", "post", _CODE),
        (r"/auth/password$", "post", {403: ["PASSWORD_INVALID", "STEP_UP_REQUIRED", *_CODE[403]]}),
        (r"/auth/password$", "post", {429: _CODE[429]}),
        (r"\{sessionId\}", "", {404: ["SESSION_NOT_FOUND"]}),
        (r"/auth/refresh$", "post", {401: ["SESSION_REQUIRED", "SESSION_ENDED"]}),
        (r"/auth/password-reset/confirm$", "post", {400: ["RESET_TOKEN_INVALID"]}),
        (r"/two-factor/enrol$", "post", {403: ["PASSWORD_INVALID", *_CODE[403][1:]], 429: _CODE[429]}),
        (
            r"/two-factor/confirm$",
            "post",
            {403: _CODE[403][2:], 409: ["TWO_FACTOR_NOT_STARTED", "TWO_FACTOR_ON"], 429: _CODE[429]},
        ),
        (
            r"/two-factor/(recovery-codes|disable)$",
            "post",
            {403: ["PASSWORD_INVALID", *_CODE[403]], 429: _CODE[429]},
        ),
        (r"^/api/admin/auth/(sign-in|two-factor/\w+|refresh|sign-out|set-password)$", "", {403: ["OTHER_SITE"]}),
        (r"/admin/auth/(sign-in|two-factor/\w+)$", "post", {401: ["INVALID_CREDENTIALS"], 429: _CODE[429]}),
        (r"/admin/auth/(sign-in|two-factor/confirm)$", "post", {401: _CODE[403]}),
        (r"/admin/auth/set-password$", "post", {400: ["RESET_TOKEN_INVALID"]}),
        (r"/admin/auth/(step-up|password|recovery-codes)$", "post", _CODE),
        (r"/admin/auth/(password|recovery-codes)$", "post", {403: ["PASSWORD_INVALID"]}),
        (r"/admin/operators$", "post", {409: ["EMAIL_TAKEN"]}),
        (r"/api-keys$", "post", {403: ["SCOPE_NOT_ALLOWED"]}),
        (r"/dashboard/invitations$", "post", {409: ["EMAIL_TAKEN", "TOO_MANY_MEMBERS"], 403: ["ROLE_NOT_ALLOWED"]}),
        (r"\{invitationId\}", "", {404: ["INVITATION_NOT_FOUND"]}),
        (r"\{memberId\}", "", {404: ["MEMBER_NOT_FOUND"], 403: ["ROLE_NOT_ALLOWED"]}),
        (r"/members/(\{memberId\}|leave)$", "", {409: ["LAST_OWNER"]}),
        (r"\{(memberId|operatorId)\}/two-factor/reset$", "post", {403: ["NOT_YOURSELF"]}),
        (r"/auth/invitations/", "post", {400: ["INVITATION_INVALID"], 403: ["OTHER_SITE"]}),
        (r"/auth/invitations/accept$", "post", {409: ["EMAIL_TAKEN"]}),
        (r"\{operatorId\}", "", {404: ["OPERATOR_NOT_FOUND"]}),
        (r"\{operatorId\}(/disable)?$", "p", {409: ["LAST_OWNER"]}),
        *MERCHANT_ERRORS,
        *OVERVIEW_ERRORS,
        (r"/merchant/projects$", "post", {403: ["LIVE_NOT_GRANTED"]}),
        *ADMIN_ERRORS,
    )
)
"""What can go wrong with single nouns, by their path and method."""


def error_answer(status: int, codes: Sequence[str]) -> dict[str, Any]:
    """Describe an error of this status: which codes it has, and how one looks."""
    sentence = HTTP_ERRORS.get(status, ("", "What is wrong, in a sentence."))[1]
    example = {"success": False, "error": sentence, "code": codes[0]}
    one_of = {"properties": {"code": {"description": "Which one it is.", "enum": [*codes]}}}
    schema = {"allOf": [{"$ref": "#/components/schemas/Error"}, one_of]}
    return {
        "description": f"{HTTPStatus(status).phrase}: {', '.join(f'`{code}`' for code in codes)}.",
        "content": {
            "application/json": {
                "schema": schema,
                "examples": {codes[0]: {"value": example}},
            }
        },
    }


def _of_opt(opt: Mapping[str, Any], schemes: Collection[str]) -> Iterator[Mapping[int, Sequence[str]]]:
    """Yield what a handler's own needs refuse: a scope, a step-up, a permission."""
    if opt.get(SCOPE) not in {None, "read"}:
        yield _OF_LIVE
    if opt.get(STEP_UP) and SESSION_SCHEME in schemes:
        yield _OF_STEP_UP
    if SESSION_SCHEME in schemes:
        member = MEMBER_PERMISSIONS[member_permission_of(opt)]
        if len(member.roles) < len(MEMBER_ROLES):
            yield {403: ["ROLE_NOT_ALLOWED"]}
        if member.whole:
            yield {403: ["PROJECTS_LIMITED"]}
    if PERMISSION in opt:
        permission = PERMISSIONS[opt[PERMISSION]]
        if permission.roles != READ:
            yield {403: ["ROLE_NOT_ALLOWED"]}
        if permission.step_up:
            yield {403: ["STEP_UP_REQUIRED"]}


def codes_of(path: str, method: str, operation: Mapping[str, Any], opt: Mapping[str, Any]) -> dict[int, list[str]]:
    """Return the codes of an operation's errors, by status: those of all, of its credential, its body and its noun.

    ``method`` is in lower case, ``opt`` the handler's: what it needs to be let in.
    """
    schemes = {name for scheme in operation.get("security", ()) for name in scheme}
    found: dict[int, list[str]] = {400: ["VALIDATION_ERROR"], 500: ["INTERNAL_ERROR"]}
    if not path.startswith("/health/"):
        found[429] = ["RATE_LIMITED", "BUSY"]
        found[503] = ["TOO_SLOW", "UNAVAILABLE"]
    parts: list[Mapping[int, Sequence[str]]] = [_OF_SCHEME[name] for name in sorted(schemes)]
    parts += _of_opt(opt, schemes)
    if method != "get" and _IS_ACTIVE.search(path):
        parts.append(_OF_ACTIVE)
    if operation.get("requestBody") is not None:
        parts.append(_OF_BODY)
    if any(one["name"] == "format" for one in operation.get("parameters", ())):
        parts.append({400: ["EXPORT_TOO_LARGE"]})
    if any(one["name"] == "Idempotency-Key" for one in operation.get("parameters", ())):
        parts.append({409: ["IDEMPOTENCY_KEY_REUSED"]})
    if "{projectId}" in path:
        parts.append(_OF_PROJECT)
    parts += [codes for prefix, methods, codes in _OF_NOUN if prefix.search(path) and method.startswith(methods)]
    for part in parts:
        for status, codes in part.items():
            known = found.setdefault(status, [])
            known += [code for code in codes if code not in known]
    return found
