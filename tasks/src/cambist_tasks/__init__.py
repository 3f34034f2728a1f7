"""The worker: watches chains, sends on them, delivers webhooks, and runs jobs, which are defined in ``jobs``."""
