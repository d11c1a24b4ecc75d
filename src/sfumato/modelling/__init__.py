"""What methods share: the contract of one, and tools that more than one is made of."""
