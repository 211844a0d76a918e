"""Call one function of this package and print what it returns."""

import importlib
import json
import sys

import django


def main() -> None:
    django.setup()
    module, _, name = sys.argv[1].partition(".")
    function = getattr(importlib.import_module(f"benchmarks.inside.{module}"), name)
    print(json.dumps(function(**json.loads(sys.argv[2]))), flush=True)


main()
