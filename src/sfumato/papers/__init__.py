"""The methods of the papers, as the papers have them, on what the recommended ones are made of."""
