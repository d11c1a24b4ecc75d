"""Other libraries under the same conditions: adapters that run them, referees that judge them.

Each file in `adapters` and `referees` is a script that states at its top (as PEP 723 has it) which
packages in which versions it needs. It runs in an environment of its own, made on first use in the
folder `SFUMATO_PEERS` (by default `~/.cache/sfumato-peers`).
"""
