"""The probes: small measurements, each run in a fresh process by `python -m benchmarks.probe`.

A probe imports the library it measures inside its function: torch's spawned workers import the main module again,
and must not pay for what a probe does not need.
"""
