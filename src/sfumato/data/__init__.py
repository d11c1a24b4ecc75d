"""Reading and writing through the schema: sources, parsing, column codes, codecs, rows."""
