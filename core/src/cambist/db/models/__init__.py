"""Every table, one module per noun."""

from .base import Base
from .deposits import ChainBlock, Cursor, Deposit
from .ledger import LedgerAccount, LedgerMovement, LedgerTransaction
from .merchants import AccountKey, Merchant, PasswordReset, Session
from .payments import Address, IdempotencyKey, Payment
from .projects import ApiKey, Project
from .sandbox import SandboxBlock, SandboxChain, SandboxTransfer
from .webhooks import WebhookAttempt, WebhookDelivery

__all__ = [
    "AccountKey",
    "Address",
    "ApiKey",
    "Base",
    "ChainBlock",
    "Cursor",
    "Deposit",
    "IdempotencyKey",
    "LedgerAccount",
    "LedgerMovement",
    "LedgerTransaction",
    "Merchant",
    "PasswordReset",
    "Payment",
    "Project",
    "SandboxBlock",
    "SandboxChain",
    "SandboxTransfer",
    "Session",
    "WebhookAttempt",
    "WebhookDelivery",
]
