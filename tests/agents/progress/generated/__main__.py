"""`python -m tests.agents.progress.generated SEED EACH [--shapes]`: prints EACH runs of every kind as JSON."""

import argparse
import json
import sys

from tests.agents.progress.generated.runs import generate_runs

parser = argparse.ArgumentParser(description="Prints runs of agents, benign and stuck, as traces for `manage.py stuck_eval`.")
parser.add_argument("seed", type=int)
parser.add_argument("each", type=int, help="runs of every kind")
parser.add_argument("--shapes", action="store_true", help="with the shapes of texts, as Orrery records them")
arguments = parser.parse_args()
json.dump(generate_runs(arguments.seed, arguments.each, shapes=arguments.shapes), sys.stdout)
