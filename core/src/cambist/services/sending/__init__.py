"""What the gateway sends: one engine for payouts, refunds, withdrawals, collections and gas."""
