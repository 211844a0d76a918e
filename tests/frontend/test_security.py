"""The headers of every answer."""

import re

import pytest
from django.http import HttpResponse
from django.test import RequestFactory

from frontend.security import ContentSecurityPolicy


def policy_of(request, **headers: str) -> str:
    return ContentSecurityPolicy(lambda _: HttpResponse(headers=headers))(request)["Content-Security-Policy"]


def test_an_answer_keeps_scripts_and_connections_to_this_site():
    policy = policy_of(RequestFactory().get("/", headers={"host": "localhost:8000"}))
    assert "default-src 'self';" in policy
    assert "connect-src 'self' ws://localhost:8000;" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy


def test_behind_tls_the_sockets_are_secure_too():
    request = RequestFactory().get("/", headers={"host": "localhost"}, secure=True)
    assert "wss://localhost;" in policy_of(request)


def test_a_view_may_have_a_policy_of_its_own():
    assert policy_of(RequestFactory().get("/"), **{"Content-Security-Policy": "default-src 'none'"}) == "default-src 'none'"


@pytest.mark.parametrize("path", ["/", "/login/", "/admin/", "/api/docs/", "/api/sessions/", "/nothing/", "/health/"])
def test_every_answer_has_a_policy(client, operator, path):
    client.force_login(operator)
    assert "default-src 'self'" in client.get(path)["Content-Security-Policy"]
    assert "'unsafe-inline'" not in client.get(path)["Content-Security-Policy"].split("style-src")[0]


def test_only_a_page_with_the_editor_of_plans_lets_styles_in_that_are_written_and_only_by_a_nonce(client, operator):
    client.force_login(operator)
    pages = [client.get("/") for _ in range(2)]
    nonces = [re.search(r'nonce="([\w-]{20,})"', page.content.decode())[1] for page in pages]
    for page, nonce in zip(pages, nonces, strict=True):
        assert page["Content-Security-Policy"].endswith(f"; style-src 'self' 'nonce-{nonce}'")
    assert nonces[0] != nonces[1]
    assert "nonce" not in client.get("/inbox/")["Content-Security-Policy"]
