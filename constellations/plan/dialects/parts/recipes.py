"""Actions that name a recipe of their task's device, as commands. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.devices.profiles.recipes import Recipe, read_recipe
from constellations.plan.keys.calls import COMMAND
from constellations.plan.values import Finding, Row, did_you_mean

Recipes = Mapping[str, Mapping[str, Any]]
"""By device the recipes of its profile that actions may name, by name."""


def call_of_recipe(recipes: Recipes, device: Any, name: Any, arguments: Any) -> tuple[Row, list[Finding]] | None:
    """{tool, arguments} of the recipe that an action names, and what is wrong with its arguments; None where it names none."""
    known = recipes.get(device, {}) if isinstance(device, str) else {}
    if not isinstance(name, str) or name not in known or not isinstance(arguments, Mapping):
        return None
    recipe = read_recipe(name, known[name])
    if recipe is None:
        return {}, [((), f"the recipe {name} of {device} is broken: its profile must be corrected")]
    given = {key: _text(value) for key, value in arguments.items() if value is not None}
    findings = list(_flaws(recipe, given))
    return ({}, findings) if findings else ({"tool": COMMAND, "arguments": {"argv": recipe.argv(given)}}, [])


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _flaws(recipe: Recipe, given: Mapping[str, str]) -> Iterator[Finding]:
    for name, value in given.items():
        if name not in recipe.parameters:
            yield (name,), f"{recipe.name} has no parameter {name}{did_you_mean(name, recipe.parameters)}"
        elif problem := recipe.parameters[name].problem(value):
            yield (name,), problem
    if missing := recipe.missing(given):
        yield (), f"{recipe.name} needs {' and '.join(missing)}: {recipe.usage()}"
