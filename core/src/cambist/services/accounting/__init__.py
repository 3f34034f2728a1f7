"""The ledger, what merchants read of it, usage credits, and balances per token."""
