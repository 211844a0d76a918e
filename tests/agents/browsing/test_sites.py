"""The allow-list of a browser: what an entry means, and what it does not."""

import pytest

from agents.browsing.sites import SiteRejected, Sites


def why(url: str, *allow: str, is_page: bool = True) -> str:
    return Sites.of(list(allow)).why_refused(url, is_page=is_page)


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("https://example.org", "https://example.org/a?b#c"), ("example.org", "http://example.org"),
        ("example.org", "https://EXAMPLE.org./a"), ("*.example.org", "https://a.b.example.org/"),
        ("http://127.0.0.1:8123", "http://127.0.0.1:8123/x"), ("[::1]:8000", "http://[::1]:8000/"),
        ("example.org:8443", "https://example.org:8443/"), ("https://example.org", "wss://example.org/live"),
    ],
)  # fmt: skip
def test_what_an_entry_means_may_be_opened(entry, url):
    assert why(url, entry) == ""


@pytest.mark.parametrize(
    ("entry", "url"),
    [
        ("https://example.org", "http://example.org/"), ("example.org", "https://example.org:8443/"),
        ("*.example.org", "https://example.org/"), ("*.example.org", "https://badexample.org/"),
        ("example.org", "https://example.org.evil.example/"), ("example.org", "https://evil.example/example.org"),
        ("https://example.org", "ws://example.org/"), ("example.org", "https://example.org@evil.example/"),
        ("127.0.0.1", "http://localhost/"), ("example.org", "https://user:word@example.org/"),
    ],
)  # fmt: skip
def test_what_it_does_not_mean_is_refused(entry, url):
    assert why(url, entry) != ""


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd", "data:text/html,hi", "chrome://version", "view-source:https://example.org/", "blob:https://a/b",
        "javascript:alert(1)", "ftp://example.org/", "about:config", "filesystem:https://example.org/a", "", "example.org",
        "https://example.org:99999/", "https://[::1/", "chrome-extension://abc/", "devtools://x",
    ],
)  # fmt: skip
def test_other_kinds_of_addresses_are_no_pages(url):
    assert why(url, "example.org", "*.example.org") != ""


def test_a_page_may_load_what_it_made_itself():
    assert why("data:image/png;base64,AA", is_page=False) == why("blob:https://a/b", is_page=False) == ""
    assert why("about:blank") == ""


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "*",
        "*.*",
        "https://",
        "https://a/b",
        "ftp://a",
        "a:0",
        "a:70000",
        "a b",
        "a,b",
        "http://a@b",
        7,
        None,
        "https://*",
        "-a",
    ],
)
def test_an_entry_that_cannot_be_meant_is_named(entry):
    with pytest.raises(SiteRejected, match=r"is no origin|has a port that there is not"):
        Sites.of([entry])


@pytest.mark.parametrize(
    ("address", "allowed"),
    [
        ("93.184.216.34", True), ("10.0.0.5", False), ("127.0.0.1", False), ("169.254.169.254", False), ("::1", False),
        ("::ffff:10.0.0.5", False), ("fe80::1%2", False), ("64:ff9b::a00:5", False), ("0.0.0.0", False), ("224.0.0.1", False),
        ("192.168.7.7", True), ("::ffff:192.168.7.7", True),
    ],
)  # fmt: skip
def test_an_address_inside_has_to_be_on_the_list_itself(address, allowed):
    sites = Sites.of(["https://inside.example", "192.168.7.7"])
    assert (sites.why_not_address("inside.example", address, 443) == "") is allowed


def test_it_is_on_the_list_with_its_port():
    sites = Sites.of(["http://127.0.0.1:8000", "localhost:9000"])
    assert sites.why_not_address("x.example", "127.0.0.1", 8000) == ""
    assert "x.example is 127.0.0.1, which is inside" in sites.why_not_address("x.example", "127.0.0.1", 22)
    assert sites.why_not_address("localhost", "127.0.0.1", 9000) == ""
    assert sites.why_not_address("x.example", "127.0.0.1", 9000) != ""
