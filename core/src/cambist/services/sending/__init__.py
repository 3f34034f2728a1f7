"""What the gateway sends: one engine for payouts, refunds, withdrawals, collections and gas.

``intents`` queues them, of the kinds that ``cambist.domain.intents`` declares. ``engine`` ticks: ``batches`` finds out
what can be sent now, ``nonce_slots`` reserves nonces and has the signer sign, ``context`` broadcasts, ``following``
asks what became of it, ``finalizing`` ends it.
"""
