"""What operators see over all merchants: lists, single things in full, and what a text that somebody was sent names."""
