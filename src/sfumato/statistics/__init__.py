"""Statistics of encoded rows: each with its bound and the proof of it."""
