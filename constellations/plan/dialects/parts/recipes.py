"""Actions that name a recipe of their task's device, as commands. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.devices.profiles.recipes import read_recipe
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
    given = {
        key: str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in arguments.items()
        if value is not None
    }
    findings: list[Finding] = []
    for key, value in given.items():
        if key not in recipe.parameters:
            findings.append(((key,), f"{name} has no parameter {key}{did_you_mean(key, recipe.parameters)}"))
        elif problem := recipe.parameters[key].problem(value):
            findings.append(((key,), problem))
    if missing := recipe.missing(given):
        findings.append(((), f"{name} needs {' and '.join(missing)}: {recipe.usage()}"))
    return ({}, findings) if findings else ({"tool": COMMAND, "arguments": {"argv": recipe.argv(given)}}, [])
