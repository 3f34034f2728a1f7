"""Price sources for Cambist: fixed prices from the operator's file, CoinGecko, and Kraken."""
