"""The specification's rows, word for word: method and path, whose credential, what is answered, what is refused how."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from . import shapes
from .shapes import Shown, Success


class Row(Struct, frozen=True):
    """One endpoint: credentials by the letters of section 4, the answer, its status, those of other answers shown."""

    credentials: str
    answer: type[Shown] = Success
    status: int = 200
    refusals: tuple[int, ...] = ()


K, B, T, CREATOR, NONE = "K", "B", "T", "KBA", ""

ROWS: Mapping[str, Row] = {
    # 4.1
    "POST /api/payment/quote": Row(K, shapes.Quoted, 200, (400, 403)),
    "POST /api/payment": Row(K, shapes.PaymentMade, 201, (400, 403, 409)),
    "GET /api/payment": Row(K, shapes.Payments),
    "GET /api/payment/{paymentId}": Row(K, shapes.PaymentRead, 200, (404,)),
    "GET /api/payment/{paymentId}/receipt-links": Row(K, shapes.ReceiptLinks, 200, (404,)),
    "POST /api/payment/{paymentId}/refund": Row(K, Success, 201),
    "GET /api/payment/refunds/list": Row(K, shapes.Refunds),
    "GET /api/payment/public/{publicId}": Row(NONE, shapes.PublicPaymentRead, 200, (404,)),
    # 4.2
    "GET /api/public/chains": Row(NONE, shapes.Chains),
    "GET /api/public/tokens": Row(NONE, shapes.Tokens, 200, (400,)),
    "GET /api/public/cpt-calculator-config": Row(NONE, shapes.CalculatorConfig),
    # 4.3
    "GET /api/merchant/wallet": Row(K, shapes.Wallet),
    "GET /api/merchant/wallet/balance": Row(K, shapes.Balance),
    "GET /api/merchant/wallet/addresses": Row(K, shapes.Addresses),
    "GET /api/merchant/wallet/transactions": Row(K, shapes.Transactions),
    "POST /api/merchant/wallet/payout": Row(K, shapes.PayoutMade, 201, (400, 403, 503)),
    "POST /api/merchant/wallet/payout/batch": Row(K, shapes.BatchMade, 201, (403,)),
    "GET /api/merchant/wallet/payouts": Row(K, shapes.Payouts),
    "PATCH /api/merchant/wallet/coins/{chain}/{symbol}/settings": Row(K),
    # 4.4
    "POST /api/merchant/swap-bridge/swap/quote": Row(K, shapes.SwapQuoted, 200, (400, 402)),
    "POST /api/merchant/swap-bridge/swap/execute": Row(K, shapes.ExchangeMade, 200, (400, 402)),
    "POST /api/merchant/swap-bridge/bridge/quote": Row(K, shapes.BridgeQuoted, 200, (400,)),
    "POST /api/merchant/swap-bridge/bridge/execute": Row(K, shapes.ExchangeMade, 200, (400, 402)),
    "GET /api/merchant/swap-bridge/history": Row(K, shapes.Exchanges),
    "GET /api/merchant/swap-bridge/platform-fees": Row(K, shapes.PlatformFees),
    # 4.5
    "POST /api/merchant/projects": Row(B, shapes.ProjectMade, 201),
    "POST /api/merchant/projects/{projectId}/rotate-webhook-secret": Row(B, shapes.SecretRotated, 200, (401, 403, 404)),
    "POST /api/merchant/projects/{projectId}/test-webhook": Row(B, shapes.TestDelivered, 200, (400, 401, 403, 404)),
    # 4.6
    "GET /api/merchant/webhooks": Row(B, shapes.Trackers),
    "POST /api/webhook/create": Row(CREATOR, shapes.TrackerMade, 201, (401, 403)),
    "GET /api/webhook/get": Row(T, shapes.TrackerRead),
    "POST /api/webhook/update": Row(T),
    "POST /api/webhook/activate": Row(T),
    "POST /api/webhook/deactivate": Row(T),
    "POST /api/webhook/regenerate-secret": Row(T, shapes.CredentialsMade),
    "POST /api/webhook/test": Row(T),
    "GET /api/webhook/address/list": Row(T, shapes.Addresses),
    "POST /api/webhook/address/add": Row(T),
    "POST /api/webhook/address/add-bulk": Row(T),
    "POST /api/webhook/address/update": Row(T),
    "POST /api/webhook/address/remove": Row(T),
    "POST /api/webhook/address/remove-bulk": Row(T),
    "GET /api/webhook/transaction/list": Row(T, shapes.Transactions),
    "GET /api/status": Row(NONE),
    # 4.7
    "POST /api/account": Row(K, shapes.AccountMade, 201),
}
