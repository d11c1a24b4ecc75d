"""The privacy engine: budget, accounting, noise, ledger, releases."""
