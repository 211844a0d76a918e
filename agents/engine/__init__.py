"""The engine: runners that own sessions by leases, drive their machines in one loop and record in groups.

registry   what drives an interaction (constellations registers itself)
tools      what a body of work can be: plain functions and coroutines
outcomes   the file that survives a killed runner
leases     who owns which session; who is dead
journal    group commit
drive      one session in a runner's memory
sessions   all sessions of a runner: turns, commits, bodies, readings
runner     the loop, its leases, its end
"""
