"""Runs of agents made up from a seed, benign and stuck, as traces that `manage.py stuck_eval` reads.

A run is written as an agent would meet it, with whole answers: a page with its request id, tests with their durations.
Only then is it reduced to what a trace holds: digests of the raw texts, and their shapes if these are wanted.
So a loop's answers look new wherever a real one's would, and nothing is written for or against a single rule.

Begin at: runs.generate_runs (all kinds), loops.LOOPS and work.WORK (the kinds and their variants), session.Session (how
    an agent acts), texts.Texts (what it is answered). `python -m tests.agents.progress.generated SEED EACH [--shapes]`
    prints runs.
"""
