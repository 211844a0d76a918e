"""The digits example's commands: fetch, train, evaluate, deploy. Run as `python -m examples.digits.<name>`."""

import os

# The matrices are small: threads would cost more than they bring, and take the processors from other commands.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
