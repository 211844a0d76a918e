"""Benchmarks: how fast the real engine is, on fresh installations, beside the raw limit of the same run.

    python -m benchmarks [--smoke] [--only NAME ...] [--database sqlite|postgres|both] [--json FILE]

    places     fresh installations: a database, a state folder, processes
    inside/    what runs in those processes, with Django set up
    suite      the benchmarks, each a function that yields rows
    alive      those of agents that are told something, and of agents that wait
    report     rows, targets, the table
    machine    what this machine is, and what a process takes of it

What each measures and how to read it: docs/benchmarks.md.
"""
