"""The drop-in for torch's DataLoader: the same test on torch's own class, which is the oracle, and on ours."""
