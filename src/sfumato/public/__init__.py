"""Networks that anyone may see: trained on public data, named by their digest."""
