"""Accounts: a merchant's end users, each with permanent addresses to which any number of deposits may come."""
