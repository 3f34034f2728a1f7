"""Every table, one module per noun."""

from .base import Base
from .deposits import ChainBlock, Cursor, Deposit
from .jobs import CronRun, Job, JobOutput
from .ledger import LedgerAccount, LedgerMovement, LedgerTransaction
from .merchants import AccountKey, Merchant, PasswordReset, Session
from .outbound import GasStation, OutboundIntent, OutboundSender, OutboundSlot, OutboundTx
from .payments import Address, IdempotencyKey, Payment
from .payouts import ApprovedAddress, CoinSettings, Payout, PayoutBatch, RefundPart
from .platform import PlatformSettings, PricePoint, UsageRecord
from .projects import ApiKey, Project
from .sandbox import SandboxBlock, SandboxChain, SandboxTransfer
from .two_factor import RecoveryCode, TwoFactorState
from .webhooks import WebhookAttempt, WebhookDelivery

__all__ = [
    "AccountKey",
    "Address",
    "ApiKey",
    "ApprovedAddress",
    "Base",
    "ChainBlock",
    "CoinSettings",
    "CronRun",
    "Cursor",
    "Deposit",
    "GasStation",
    "IdempotencyKey",
    "Job",
    "JobOutput",
    "LedgerAccount",
    "LedgerMovement",
    "LedgerTransaction",
    "Merchant",
    "OutboundIntent",
    "OutboundSender",
    "OutboundSlot",
    "OutboundTx",
    "PasswordReset",
    "Payment",
    "Payout",
    "PayoutBatch",
    "PlatformSettings",
    "PricePoint",
    "Project",
    "RecoveryCode",
    "RefundPart",
    "SandboxBlock",
    "SandboxChain",
    "SandboxTransfer",
    "Session",
    "TwoFactorState",
    "UsageRecord",
    "WebhookAttempt",
    "WebhookDelivery",
]
