"""What a merchant's balances consist of: every change of them, page by page or as one file."""
