"""The installation's model profiles: which language models may be asked, and for what. Kept in the system stream."""

from __future__ import annotations

import re
from math import isfinite
from typing import Any

from agents.errors import AgentsError
from agents.llm.addresses import base_url_flaw
from agents.llm.choices import PURPOSES
from agents.llm.profiles import DEFAULT_BASE_URLS, FROM_ENVIRONMENT, PROVIDERS, THINKING_LEVELS
from agents.masks.masking import is_hidden
from agents.masks.values import NAME, mask_text
from agents.models import ModelProfile
from agents.streams.door import door, system_stream

PROFILES = 100
"""An installation has at most so many."""
PROFILE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MODEL_LENGTH = 200
"""Characters."""
FALLBACKS = 10
LARGEST_NUMBER = 2_000_000_000
"""Of tokens, requests and calls, and of a price."""
HOTTEST = 2.0
"""The highest temperature that any provider takes."""
FIELDS: dict[str, Any] = {
    "provider": None, "model": None, "base_url": "", "key": "", "context_window": None, "max_output_tokens": None,
    "price_input": None, "price_cached_input": None, "price_output": None, "requests_per_minute": None,
    "tokens_per_minute": None, "calls_in_flight": None, "temperature": None, "thinking": "", "sees": False, "fallbacks": [],
    "purposes": [],
}  # fmt: skip
"""What a profile says beside its name, and what it says by default; provider and model must be given."""
COUNTS = ("context_window", "max_output_tokens", "requests_per_minute", "tokens_per_minute", "calls_in_flight")
PRICES = ("price_input", "price_cached_input", "price_output")

Problem = dict[str, str]


class NoSuchModelProfile(AgentsError):
    """There is no model profile {id}."""

    code = "no_such_model_profile"
    status = 404


class ModelProfileExists(AgentsError):
    """There is a model profile of that name."""

    code = "model_profile_exists"
    status = 409


class ModelProfileInUse(AgentsError):
    """Another profile falls back to it."""

    code = "model_profile_in_use"
    status = 409


class ModelProfileRejected(AgentsError):
    """The model profile cannot be as it is described; `problems` name the fields."""

    code = "model_profile_rejected"


class TooManyModelProfiles(AgentsError):
    """The installation has as many model profiles as it may have."""

    code = "too_many_model_profiles"
    status = 409


def model_profile_create(name: str, *, by: str, request_id: str = "", **fields: Any) -> ModelProfile:
    """A new profile from the keys of FIELDS; a purpose that it names is another's no more.

    Raises ModelProfileRejected, ModelProfileExists, TooManyModelProfiles.
    """
    said = {**FIELDS, **fields}
    with door(system_stream(), by, request_id) as opened:
        check_profile(name, said)
        if ModelProfile.objects.filter(name__iexact=name).exists():
            raise ModelProfileExists(f"there is a model profile called {name} already")
        if is_full():
            raise TooManyModelProfiles(f"there are {PROFILES} model profiles already; delete one first")
        row = {"id": opened.take(), "name": name, "created_at": opened.turn.at, **said}
        others = _without_purposes(row["id"], said["purposes"])
        opened.turn.record("model_profile_created", add={"model_profile": [row]}, set={"model_profile": others})
    return ModelProfile.objects.get(pk=row["id"])


def model_profile_change(profile_id: int, *, by: str, request_id: str = "", **fields: Any) -> ModelProfile:
    """Change what is given; what is so already is not recorded. Where a profile is asked elsewhere, its key is cleared
    unless one is given with the change: nobody gets a key that was meant for somebody else.

    Raises NoSuchModelProfile, ModelProfileRejected.
    """
    with door(system_stream(), by, request_id) as opened:
        before = _said(profile_id)
        name = before.pop("name")
        moved = any(fields.get(place, before[place]) != before[place] for place in ("base_url", "provider"))
        if moved and fields.get("key", before["key"]) == before["key"]:
            fields["key"] = ""
        check_profile(name, {**before, **fields})
        changes = {field: value for field, value in fields.items() if value != before[field]}
        if changes:
            others = _without_purposes(profile_id, changes.get("purposes", []))
            changed = {str(profile_id): changes, **others}
            opened.turn.record("model_profile_changed", set={"model_profile": changed})
    return ModelProfile.objects.get(pk=profile_id)


def model_profile_delete(profile_id: int, *, by: str, request_id: str = "") -> None:
    """Calls under way go on; raises NoSuchModelProfile, ModelProfileInUse."""
    with door(system_stream(), by, request_id) as opened:
        before = _said(profile_id)
        users = [row.name for row in ModelProfile.objects.all() if before["name"] in row.fallbacks]
        if users:
            raise ModelProfileInUse(f"{', '.join(users)} falls back to {before['name']}; change that first")
        opened.turn.record("model_profile_deleted", delete={"model_profile": [profile_id]}, **before)


def is_full() -> bool:
    """Whether the installation has all the profiles it may have."""
    return ModelProfile.objects.count() >= PROFILES


def _said(profile_id: int) -> dict[str, Any]:
    """What the profile says now, its name with it."""
    found = ModelProfile.objects.filter(pk=profile_id).values("name", *FIELDS).first()
    if found is None:
        raise NoSuchModelProfile(f"there is no model profile {profile_id}")
    return found


def _without_purposes(profile_id: int, taken: list[str]) -> dict[str, dict[str, list[str]]]:
    """By id, what other profiles are still asked for when `profile_id` takes these purposes."""
    changes = {}
    for row in ModelProfile.objects.exclude(pk=profile_id) if taken else ():
        left = [purpose for purpose in row.purposes if purpose not in taken]
        if left != row.purposes:
            changes[str(row.pk)] = {"purposes": left}
    return changes


def check_profile(name: str, said: dict[str, Any]) -> None:
    """Raise ModelProfileRejected with the place of everything that is wrong."""
    problems = problems_of(name, said)
    if problems:
        raise ModelProfileRejected("; ".join(f"{each['key']}: {each['message']}" for each in problems), problems)


def problems_of(name: str, said: dict[str, Any]) -> list[Problem]:
    """What is wrong with a profile that says `said`, a place each: {"key", "message"}."""
    found = [(field, "there is no such field") for field in said if field not in FIELDS]
    if not isinstance(name, str) or not PROFILE_NAME.fullmatch(name):
        found.append(("name", "must be up to 80 letters, digits and . _ -, and begin with a letter or digit"))
    elif name.lower() == FROM_ENVIRONMENT:
        found.append(("name", f"{FROM_ENVIRONMENT} is the profile that LLM_BASE_URL and LLM_MODEL make"))
    found.append(("model", _text_flaw(said["model"], MODEL_LENGTH) or ("" if said["model"].strip() else "must be given")))
    found.append(("key", _key_flaw(said["key"])))
    if said["provider"] not in PROVIDERS:
        found.append(("provider", f"must be one of {', '.join(PROVIDERS)}"))
    else:
        found.append(("base_url", _address_flaw(said["base_url"], said["provider"])))
    found += [(field, _number_flaw(said[field], 1, LARGEST_NUMBER, whole=True)) for field in COUNTS]
    found += [(field, _number_flaw(said[field], 0, LARGEST_NUMBER)) for field in PRICES]
    found.append(("temperature", _number_flaw(said["temperature"], 0, HOTTEST)))
    if said["thinking"] not in THINKING_LEVELS:
        found.append(("thinking", f"must be one of {', '.join(THINKING_LEVELS[1:])}, or empty"))
    found.append(("sees", "" if isinstance(said["sees"], bool) else "must be true or false"))
    known = {FROM_ENVIRONMENT, *ModelProfile.objects.values_list("name", flat=True)} - {name}
    found.append(("fallbacks", _list_flaw(said["fallbacks"], known, FALLBACKS, "names of other profiles")))
    found.append(("purposes", _list_flaw(said["purposes"], set(PURPOSES), len(PURPOSES), ", ".join(PURPOSES))))
    return [{"key": place, "message": flaw} for place, flaw in found if flaw]


HIDDEN = "holds what is shown in the place of a secret; leave it as it was, or write it anew"


def _text_flaw(text: Any, longest: int) -> str:
    if not isinstance(text, str):
        return "must be text"
    if is_hidden(text):
        return HIDDEN
    if not text.isprintable():
        return "may hold no control characters"
    return "" if len(text) <= longest else f"has {len(text)} characters, at most {longest} are allowed"


def _key_flaw(key: Any) -> str:
    if key == "":
        return ""
    if not isinstance(key, str) or not NAME.fullmatch(key):
        return "names the key, by up to 64 letters, digits and _: NAME of ORRERY_KEY_NAME, or of a file in ORRERY_SECRETS_DIR"
    if mask_text(key) != key:
        return "looks like a key itself, and keys are not kept here: put it into the variable ORRERY_KEY_NAME, and name NAME"
    return ""


def _address_flaw(base_url: Any, provider: str) -> str:
    if not isinstance(base_url, str):
        return "must be text"
    if base_url:
        return HIDDEN if is_hidden(base_url) else base_url_flaw(base_url, provider)
    return "" if DEFAULT_BASE_URLS[provider] else f"must be given for {provider}"


def _number_flaw(value: Any, least: float, most: float, whole: bool = False) -> str:
    if value is None:
        return ""
    kinds = int if whole else int | float
    if isinstance(value, bool) or not isinstance(value, kinds) or not isfinite(value) or not least <= value <= most:
        return f"must be a {'whole ' if whole else ''}number from {least:,} to {most:,}, or empty"
    return ""


def _list_flaw(values: Any, known: set[str], most: int, described: str) -> str:
    if not isinstance(values, list) or len(values) > most or len(set(map(str, values))) < len(values):
        return f"must be a list of at most {most}, each once"
    unknown = [str(value)[:80] for value in values if not isinstance(value, str) or value not in known]
    return f"{', '.join(unknown)}: known are {described}" if unknown else ""
