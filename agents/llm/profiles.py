"""Model profiles as calls use them: read from rows, and one of the environment; which of them serves a purpose."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import cast

from django.conf import settings

from agents.errors import AgentsError
from agents.llm.addresses import base_url_flaw
from agents.llm.choices import PURPOSES
from agents.llm.faults import ProfileUnusable
from agents.masks.values import KEY_PREFIX, OWN_MODEL_KEY, SecretMissing, model_key, usable_secret
from agents.streams.row_types import ModelProfileRow
from agents.streams.tables import fold_rows

DEFAULT_BASE_URLS = {
    "openai_compatible": "",
    "openai_responses": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com",
    "google": "https://generativelanguage.googleapis.com",
    "bedrock": "",
    "ollama": "",
}
"""By provider, for a profile that names none; empty: it has to name one."""
PROVIDERS = tuple(DEFAULT_BASE_URLS)
THINKING_LEVELS = ("", "off", "on", "low", "medium", "high")
"""How much a model thinks before it answers; empty leaves it to the provider."""
FROM_ENVIRONMENT = "environment"
"""The name of the profile that LLM_BASE_URL, LLM_MODEL, LLM_SEES and LLM_API_KEY make; no row has it."""


class NoModelProfile(AgentsError):
    """No language model is configured for what is to be done."""

    code = "no_model_profile"
    status = 409


@dataclass(frozen=True)
class Profile:
    """How a model is asked. `key` names the key, and never is it. Prices are for a million tokens; None is not known.

    `sees`: it takes pictures. `fallbacks` are names of profiles, to be asked in this order where this one fails.
    """

    name: str
    provider: str
    model: str
    base_url: str
    key: str = ""
    context_window: int | None = None
    max_output_tokens: int | None = None
    price_input: float | None = None
    price_cached_input: float | None = None
    price_output: float | None = None
    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    calls_in_flight: int | None = None
    temperature: float | None = None
    thinking: str = ""
    sees: bool = False
    fallbacks: tuple[str, ...] = ()
    purposes: tuple[str, ...] = ()

    def read_key(self) -> str:
        """The key's value, empty where the profile names none; raises ProfileUnusable.

        The address is looked at again: what an installation allows may have changed since the profile was written.
        """
        if flaw := base_url_flaw(self.base_url, self.provider):
            raise ProfileUnusable(f"{self.name}: the base URL {flaw}")
        try:
            if self.name == FROM_ENVIRONMENT:
                return usable_secret(OWN_MODEL_KEY, own) if (own := os.environ.get(OWN_MODEL_KEY)) else ""
            return model_key(self.key) if self.key else ""
        except SecretMissing as error:
            raise ProfileUnusable(f"{self.name}: {error}") from error


def read_profiles() -> dict[str, Profile]:
    """All profiles by name, as the rows and the environment have them now."""
    rows = cast(list[ModelProfileRow], fold_rows("model_profile", "id > %s", 0))
    found = {row["name"]: profile_of(row) for row in sorted(rows, key=lambda row: row["name"])}
    if settings.LLM_MODEL:
        taken = {purpose for profile in found.values() for purpose in profile.purposes}
        found[FROM_ENVIRONMENT] = Profile(
            FROM_ENVIRONMENT, "openai_compatible", settings.LLM_MODEL, settings.LLM_BASE_URL,
            key=OWN_MODEL_KEY if os.environ.get(OWN_MODEL_KEY) else "", sees=settings.LLM_SEES,
            purposes=tuple(purpose for purpose in PURPOSES if purpose not in taken),
        )  # fmt: skip
    return found


def profile_of(row: ModelProfileRow) -> Profile:
    """A row as calls use it, with the provider's own address where it names none."""
    values = {field.name: row[field.name] for field in fields(Profile)}  # type: ignore[literal-required]
    values["base_url"] = row["base_url"] or DEFAULT_BASE_URLS[row["provider"]]
    return Profile(**{**values, "fallbacks": tuple(row["fallbacks"]), "purposes": tuple(row["purposes"])})


def choose_profiles(known: Mapping[str, Profile], purpose: str, *wanted: str) -> tuple[Profile, ...]:
    """The profile for `purpose`, the first of `wanted` that is a name, else the installation's; then its fallbacks in order.

    `known` are all profiles by name. Raises NoModelProfile where the one that is named is not there, or none has the purpose.
    """
    name = next(filter(None, wanted), "")
    if name and name not in known:
        raise NoModelProfile(f"there is no model profile {name}; `manage.py models` lists those that are there")
    chosen = known[name] if name else next((each for each in known.values() if purpose in each.purposes), None)
    if chosen is None:
        raise NoModelProfile(
            f"no language model is configured for {purpose}: make a model profile with this purpose (docs/models.md), "
            "or set LLM_BASE_URL and LLM_MODEL"
        )
    return tuple(with_fallbacks(chosen, known))


def with_fallbacks(profile: Profile, known: Mapping[str, Profile]) -> list[Profile]:
    """The profile, and those of its fallbacks that are there."""
    others: Sequence[str] = profile.fallbacks
    return [profile, *(known[name] for name in others if name in known)]


def key_place(profile: Profile) -> str:
    """Where the key of a profile is looked for, in words; empty where it names none."""
    if not profile.key:
        return ""
    return OWN_MODEL_KEY if profile.name == FROM_ENVIRONMENT else f"{KEY_PREFIX}{profile.key}"
