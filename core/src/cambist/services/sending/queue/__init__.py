"""What an operator sees of all that is to be sent, and what an operator may do about it."""
