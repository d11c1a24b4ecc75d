"""Other libraries under the same conditions: adapters that run them, referees that judge them.

Each file in `adapters` and `referees` is a script that states at its top (as PEP 723 has it) which
packages in which versions it needs. It runs in an environment of its own, made on first use in the
folder `SFUMATO_PEERS` (by default `~/.cache/sfumato-peers`), where the rows of all runs stay, too.

To add a peer: write an adapter that reads its `Job` (`adapters/exchange.py`), fits, and hands its
rows to `job.finish`; name it in `roster.py`; run `scoreboard.py --peers NAME`.
"""
