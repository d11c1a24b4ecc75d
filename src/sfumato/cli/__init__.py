"""The command line. Thin: parse, call, print."""
