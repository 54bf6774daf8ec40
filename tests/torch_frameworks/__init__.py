"""Frameworks that bring their own loop around a loader: what they iterate in the end is ours."""
