"""The live page: a network drawn in the browser, on loopback, while it trains."""
