"""What pages begin with: what happened in a time, and what needs attention.

Reads what all other rooms write, and changes nothing of it.
"""
