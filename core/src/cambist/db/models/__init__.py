"""Every table, one module per noun."""

from .audit import AuditEntry, AuditSeal
from .base import Base
from .deposits import ChainBlock, Cursor, Deposit
from .jobs import CronRun, Job, JobOutput
from .ledger import LedgerAccount, LedgerMovement, LedgerTransaction
from .merchants import AccountKey, Merchant, PasswordReset, RecoveryCode, Session, TwoFactorState
from .outbound import GasStation, OutboundIntent, OutboundSender, OutboundSlot, OutboundTx
from .payments import Address, IdempotencyKey, Payment
from .payouts import ApprovedAddress, CoinSettings, Payout, PayoutBatch, RefundPart
from .platform import PayoutMinimum, PlatformSettings, PricePoint, UsageRecord
from .projects import ApiKey, Project
from .sandbox import SandboxBlock, SandboxChain, SandboxTransfer
from .webhooks import WebhookAttempt, WebhookDelivery
