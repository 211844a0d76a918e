"""What runs in the processes of a benchmarked installation, with Django set up.

    python -m benchmarks.inside MODULE.FUNCTION '{"argument": 1}'

prints what the function returns as a line of JSON.
"""
