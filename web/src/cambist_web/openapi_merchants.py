"""What the API's description says of operators' errors with merchants, and of what a suspended merchant is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

MERCHANT_ERRORS: Sequence[tuple[str, str, Mapping[int, Sequence[str]]]] = (
    (r"/auth/(login|password)$", "post", {403: ["MERCHANT_SUSPENDED"]}),
    (r"/payment/public/\{publicId\}$", "get", {403: ["MERCHANT_SUSPENDED"]}),
    (r"/admin/merchants$", "post", {409: ["EMAIL_TAKEN"], 503: ["KEYS_UNAVAILABLE"]}),
    (r"/admin/(merchants/|password-resets$)", "", {404: ["MERCHANT_NOT_FOUND"]}),
    (r"/\{merchantId\}/suspend$", "post", {409: ["MERCHANT_ALREADY_SUSPENDED"]}),
    (r"/\{merchantId\}/reinstate$", "post", {409: ["MERCHANT_NOT_SUSPENDED"]}),
)
