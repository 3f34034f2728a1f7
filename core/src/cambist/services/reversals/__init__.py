"""Money that goes back: refunds, and decisions about deposits that belong to no order."""
