"""Where models may be asked: anywhere public, and inside only where the installation names the host (docs/models.md)."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from django.conf import settings

from agents.outside import addresses

BASE_URL_LENGTH = 500
"""Characters."""
AWS_HOST = re.compile(r"bedrock-runtime\.([a-z0-9-]{1,30})\.amazonaws\.com")


def base_url_flaw(base_url: str, provider: str) -> str:
    """What is wrong with the address at which a provider is asked; empty when nothing is."""
    if len(base_url) > BASE_URL_LENGTH or not base_url.isascii() or any(letter <= " " for letter in base_url):
        return f"must be an address of at most {BASE_URL_LENGTH} characters"
    try:
        parts = urlsplit(base_url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        return "is no address"
    if parts.scheme not in ("http", "https") or not host:
        return "must begin with https:// or http:// and name a host"
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        return "may hold no password, and nothing behind ? or #"
    if provider == "bedrock" and not (parts.scheme == "https" and AWS_HOST.fullmatch(host)):
        return "must be https://bedrock-runtime.REGION.amazonaws.com"
    if is_named(host):
        return ""
    if parts.scheme == "http":
        return f"has http, by which a key travels in the clear; use https, or name {host} in ORRERY_MODEL_HOSTS"
    if addresses.is_address(host) and not is_reachable(host, host):
        return f"is an address inside; name {host} in ORRERY_MODEL_HOSTS if models are to be asked there"
    return ""


def is_reachable(host: str, address: str) -> bool:
    """Whether a call to `host` may go to `address`: it is public, or the installation names one of the two."""
    return addresses.is_reachable(host, address, settings.MODEL_HOSTS)


def is_named(host: str) -> bool:
    """Whether the installation names the host, or the network that an address lies in."""
    return addresses.is_named(host, settings.MODEL_HOSTS)


def aws_region(base_url: str) -> str:
    """The region in an address of Bedrock that `base_url_flaw` finds nothing wrong with."""
    found = AWS_HOST.fullmatch(urlsplit(base_url).hostname or "")
    assert found is not None
    return found[1]
