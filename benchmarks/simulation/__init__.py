"""A discrete-event simulation of many nodes and consumers, in which the plan, the agenda, the machine, the executor and
the pacing are Stoker's own, and workers, nodes, object stores, the network and the clock are simulated.

What is assumed about them is in ``assumptions.py``; what came of it is in docs/design/scale.md.
"""
