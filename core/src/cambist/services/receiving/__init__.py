"""Money that comes in: payments, the deposits that pay them, and the checkout."""
