"""The library's model of a profile, and the one HTTP client of each event loop, which goes only where it may."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import httpx2
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from agents.llm.addresses import aws_region, is_reachable
from agents.llm.faults import AddressRefused, ProfileUnusable
from agents.llm.profiles import Profile
from agents.per_loop import one_per_loop

CONNECT_S = 10.0
IDLE_CONNECTIONS = 100
"""Connections to one host that are kept open for the next call..."""
IDLE_S = 30.0
"""...for so long."""
NO_KEY = "none"
"""For servers that want none: without a key the clients would take one from variables that are none of ours."""


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Looks a host's addresses up, refuses those that no setting allows, and connects to what it has looked at.

    So a name cannot lead elsewhere between the look and the connection. TLS and the Host header keep the name. Each host
    has connections of its own: two names at one address do not share one.
    """

    def __init__(self) -> None:
        self._by_host: dict[str, httpx2.AsyncHTTPTransport] = {}
        self._context = httpx2.create_ssl_context()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        host = request.url.host
        addresses = await self._look_up(request)
        transport = self._by_host.get(host)
        if transport is None:
            limits = httpx2.Limits(max_keepalive_connections=IDLE_CONNECTIONS, keepalive_expiry=IDLE_S)
            transport = self._by_host[host] = httpx2.AsyncHTTPTransport(verify=self._context, limits=limits)
        for last, address in enumerate(addresses, 1 - len(addresses)):
            request.url = request.url.copy_with(host=address)
            request.extensions["sni_hostname"] = host
            try:
                return await transport.handle_async_request(request)
            except (httpx2.ConnectError, httpx2.ConnectTimeout):
                if not last:
                    raise
        raise httpx2.ConnectError(f"{host} has no address", request=request)

    async def _look_up(self, request: httpx2.Request) -> list[str]:
        host, port = request.url.host, request.url.port
        try:
            async with asyncio.timeout(CONNECT_S):
                found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(f"nobody says the address of {host}", request=request) from error
        except OSError as error:
            raise httpx2.ConnectError(f"{host} cannot be found: {error}", request=request) from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if refused := [address for address in addresses if not is_reachable(host, address)]:
            raise AddressRefused(
                f"{host} is {refused[0]}, an address inside; name it in ORRERY_MODEL_HOSTS if models are to be asked there"
            )
        return addresses

    async def aclose(self) -> None:
        for transport in self._by_host.values():
            await transport.aclose()


def _make_client() -> httpx2.AsyncClient:
    # Redirects would carry a key elsewhere, and the environment's proxies would be asked instead of the guard.
    return httpx2.AsyncClient(
        transport=GuardedTransport(), follow_redirects=False, trust_env=False, timeout=httpx2.Timeout(None, connect=CONNECT_S)
    )


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
