"""Addresses that merchants watch: what moves from and to them, and who is told.

``movements`` stores what moved in the transaction of a poll, ``fan_out`` finds the trackers that hear of it, behind a
cursor of its own, and ``telling`` queues what they are told.
"""
