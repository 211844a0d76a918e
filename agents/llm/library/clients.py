"""The library's model of a profile, and the one HTTP client of each event loop, which goes only where it may."""

from __future__ import annotations

from typing import Any

import httpx2
from django.conf import settings
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from agents.llm.addresses import aws_region
from agents.llm.faults import AddressRefused, ProfileUnusable
from agents.llm.profiles import Profile
from agents.outside.transport import CONNECT_S, GuardedTransport, guarded_client
from agents.per_loop import one_per_loop

NO_KEY = "none"
"""For servers that want none: without a key the clients would take one from variables that are none of ours."""


def _refuse(host: str, address: str) -> AddressRefused:
    return AddressRefused(
        f"{host} is {address}, an address inside; name it in ORRERY_MODEL_HOSTS if models are to be asked there"
    )


def _make_client() -> httpx2.AsyncClient:
    transport = GuardedTransport(lambda: settings.MODEL_HOSTS, _refuse)
    return guarded_client(transport, httpx2.Timeout(None, connect=CONNECT_S))


client_of_loop = one_per_loop(_make_client)


def build_model(profile: Profile) -> Model[Any]:
    """The library's model of a profile; raises ProfileUnusable where its key or a library is missing."""
    return BUILDERS[profile.provider](profile, profile.read_key() or NO_KEY)


def _build_compatible(profile: Profile, key: str) -> Model[Any]:
    # The name stays with stored thinking, which goes back only to where it came from.
    provider = OpenAICompatibleProvider(
        profile.base_url, base_url=profile.base_url, api_key=key, http_client=client_of_loop()
    )  # fmt: skip
    return OpenAIChatModel(profile.model, provider=provider)


def _build_responses(profile: Profile, key: str) -> Model[Any]:
    provider = OpenAIProvider(base_url=profile.base_url, api_key=key, http_client=client_of_loop())
    return OpenAIResponsesModel(profile.model, provider=provider)


def _build_anthropic(profile: Profile, key: str) -> Model[Any]:
    provider = AnthropicProvider(base_url=profile.base_url, api_key=key, http_client=client_of_loop())
    return AnthropicModel(profile.model, provider=provider)


def _build_ollama(profile: Profile, key: str) -> Model[Any]:
    provider = OllamaProvider(base_url=profile.base_url, api_key=key, http_client=client_of_loop())
    return OllamaModel(profile.model, provider=provider)


def _build_google(profile: Profile, key: str) -> Model[Any]:
    try:
        from pydantic_ai.models.google import GoogleModel
        from pydantic_ai.providers.google import GoogleProvider
    except ImportError as error:
        raise _missing_extra(profile, "google") from error
    provider = GoogleProvider(base_url=profile.base_url, api_key=key, http_client=client_of_loop())
    return GoogleModel(profile.model, provider=provider)


def _build_bedrock(profile: Profile, key: str) -> Model[Any]:
    """AWS's client makes its own connections: only AWS's own hosts may be named (agents.llm.addresses)."""
    try:
        from pydantic_ai.models.bedrock import BedrockConverseModel
        from pydantic_ai.providers.bedrock import BedrockProvider
    except ImportError as error:
        raise _missing_extra(profile, "bedrock") from error
    provider = BedrockProvider(api_key=key, base_url=profile.base_url, region_name=aws_region(profile.base_url))
    return BedrockConverseModel(profile.model, provider=provider)


def _missing_extra(profile: Profile, extra: str) -> ProfileUnusable:
    return ProfileUnusable(
        f"{profile.name}: the provider {profile.provider} needs a library that is not installed; "
        f"run: pip install 'pydantic-ai-slim[{extra}]'"
    )


BUILDERS = {
    "openai_compatible": _build_compatible,
    "openai_responses": _build_responses,
    "anthropic": _build_anthropic,
    "ollama": _build_ollama,
    "google": _build_google,
    "bedrock": _build_bedrock,
}
