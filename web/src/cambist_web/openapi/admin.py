"""Which errors the operators' steering can answer: plans, settings, jobs, chains, tokens, prices and the signer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

ADMIN_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"/admin/(settings|plans/\{planId\}|merchants/\{merchantId\}/limits)$", "p", {409: ["VERSION_MISMATCH"]}),
    (r"/dashboard/members/\{memberId\}$", "patch", {409: ["VERSION_MISMATCH"]}),
    (r"/wallet/coins$", "put", {409: ["VERSION_MISMATCH"]}),
    (r"/admin/plans", "p", {409: ["PLAN_NAME_TAKEN"]}),
    (r"/admin/plans$", "post", {409: ["TOO_MANY_PLANS"]}),
    (r"\{planId\}", "", {404: ["PLAN_NOT_FOUND"], 409: ["PLAN_IS_DEFAULT"]}),
    (r"/admin/merchants/\{merchantId\}/plan$", "put", {404: ["PLAN_NOT_FOUND"], 409: ["PLAN_ARCHIVED"]}),
    (r"^/api/status$", "get", {503: ["NOT_READY"]}),
    (r"^/api/admin/(jobs|reconcile)/\{jobId\}", "", {404: ["JOB_NOT_FOUND"]}),
    (r"\{jobId\}/cancel$", "post", {409: ["JOB_ENDED"]}),
    (r"\{jobId\}/retry$", "post", {409: ["JOB_NOT_FAILED", "JOB_REPEATED"]}),
    (r"\{jobId\}/output$", "get", {409: ["JOB_WITHOUT_FILE"]}),
    (r"^/api/admin/(jobs|webhooks/redeliver)$", "post", {404: ["MERCHANT_NOT_FOUND"]}),
    (r"^/api/admin/webhooks/redeliver$", "post", {404: ["PROJECT_NOT_FOUND", "ENDPOINT_NOT_FOUND"]}),
    (r"^/api/admin/reconcile$", "post", {400: ["UNSUPPORTED_CHAIN"]}),
    (r"^/api/admin/resolutions/", "post", {403: ["PROJECT_INACTIVE"], 503: ["CHAIN_UNAVAILABLE"]}),
    (r"^/api/(admin|dashboard)/stream$", "get", {429: ["STREAMS_LIMITED"], 503: ["STREAMS_BUSY"]}),
    (r"/admin/merchants/\{merchantId\}/credits$", "post", {409: ["CREDIT_REFERENCE_REUSED"]}),
    (r"/admin/chains/\{chain\}", "", {404: ["CHAIN_NOT_FOUND"]}),
    (r"/admin/chains/\{chain\}/endpoints$", "post", {400: ["INVALID_ENDPOINT"], 404: ["ENDPOINT_NOT_FOUND"]}),
    (
        r"/admin/chains/\{chain\}/endpoints$",
        "post",
        {409: ["ENDPOINT_KNOWN", "TOO_MANY_ENDPOINTS", "CHAIN_NOT_CHANGEABLE"]},
    ),
    (r"/endpoints/\{endpointId\}$", "delete", {409: ["LAST_ENDPOINT", "CHAIN_NOT_CHANGEABLE"]}),
    (r"/admin/prices$", "get", {400: ["UNSUPPORTED_CURRENCY"]}),
    (r"/admin/tokens$", "get", {400: ["UNSUPPORTED_CHAIN"]}),
    (r"/admin/tokens$", "post", {400: ["INVALID_ADDRESS"], 404: ["CHAIN_NOT_FOUND"]}),
    (r"/admin/tokens$", "post", {409: ["TOKEN_KNOWN", "TOO_MANY_TOKENS", "CHAIN_NOT_CHANGEABLE"]}),
    (r"/admin/tokens/\{tokenId\}$", "get", {404: ["TOKEN_NOT_FOUND"]}),
    (
        r"/admin/tokens/\{chain\}/\{symbol\}$",
        "patch",
        {400: ["UNSUPPORTED_TOKEN"], 404: ["CHAIN_NOT_FOUND", "MERCHANT_NOT_FOUND"]},
    ),
    (r"/admin/tokens/\{chain\}/\{symbol\}$", "patch", {409: ["TOKEN_KNOWN", "TOO_MANY_MERCHANTS"]}),
    (
        r"/admin/chains/\{chain\}/pause$",
        "post",
        {404: ["CHAIN_NOT_FOUND"], 409: ["PAUSED_ALREADY", "CHAIN_NOT_CHANGEABLE"]},
    ),
    (r"/admin/chains/\{chain\}/rescan$", "post", {404: ["CHAIN_NOT_FOUND"], 400: ["RESCAN_OUT_OF_RANGE"]}),
    (r"/admin/chains/\{chain\}/rescan$", "post", {409: ["CHAIN_NOT_READ", "RESCAN_RUNNING"]}),
    (r"/admin/chains/\{chain\}/resume$", "post", {409: ["NOT_PAUSED"]}),
    (r"/approvals/\{approvalId\}/(approve|deny)$", "post", {404: ["APPROVAL_NOT_FOUND"]}),
    (
        r"/approvals/\{approvalId\}/(approve|deny)$",
        "post",
        {409: ["APPROVALS_NOT_OPEN", "APPROVAL_CHANGED", "TOO_MANY_ANSWERS"]},
    ),
    (r"/sources/\{name\}/set-aside$", "post", {404: ["PRICE_SOURCE_NOT_FOUND"], 409: ["SET_ASIDE_ALREADY"]}),
    (r"/sources/\{name\}/take-back$", "post", {409: ["NOT_SET_ASIDE"]}),
)
"""By path and method, as in ``errors.py``."""
