"""The methods of synthesis."""
