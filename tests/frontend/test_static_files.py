"""Static files: an address that names the release, kept and compressed; a page asks for its modules in one wave."""

import gzip
import os
import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import Context, Template
from django.templatetags.static import static

from frontend import static_files
from frontend.modules import modules_under
from frontend.static_files import Release, find_file, release
from tests.project.test_asgi import get

MODULES = Path(settings.BASE_DIR) / "frontend" / "static"
PAGE = "frontend/session/page.js"


def test_an_address_names_the_release():
    assert static(PAGE) == f"/static/{release().digest}/{PAGE}"
    assert re.fullmatch("[0-9a-f]{12}", release().digest)


def test_while_one_develops_the_address_is_plain(settings):
    settings.DEBUG = True
    assert static(PAGE) == f"/static/{PAGE}"


def test_another_file_is_another_release(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    before = release.__wrapped__()
    (tmp_path / "more.js").write_text("export const one = 1;")
    after = release.__wrapped__()
    (tmp_path / "more.js").write_text("export const one = 2;")
    assert len({before.digest, after.digest, release.__wrapped__().digest}) == 3


def test_what_was_collected_for_an_older_release_is_not_shown_in_place_of_what_is_installed(settings, tmp_path):
    settings.STATIC_ROOT = tmp_path
    (tmp_path / "frontend").mkdir()
    for name in ("dom.js", "own.js"):
        (tmp_path / "frontend" / name).write_text("collected")
    assert find_file("frontend/dom.js") == MODULES / "frontend/dom.js"
    assert find_file("frontend/own.js") == tmp_path / "frontend/own.js"


@pytest.fixture
def a_file(settings, tmp_path, monkeypatch):
    """`one.js`, collected, and the release that has it."""
    settings.STATIC_ROOT = tmp_path
    file = tmp_path / "one.js"
    file.write_text("export const one = 1;" * 100)
    found = Release("0123456789ab", {"one.js": static_files.stamp(file)})
    monkeypatch.setattr("project.static.release", lambda: found)
    return file


async def test_a_file_of_the_release_is_kept_and_compressed(a_file):
    status, headers, body = await get("/static/0123456789ab/one.js", accept_encoding="gzip, br")
    assert status == 200
    assert headers["cache-control"] == "public, max-age=31536000, immutable"
    assert (headers["content-encoding"], headers["vary"]) == ("gzip", "Accept-Encoding")
    assert headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(body) == a_file.read_bytes()
    assert int(headers["content-length"]) == len(body) < a_file.stat().st_size / 10


async def test_who_takes_no_gzip_gets_the_file_as_it_is(a_file):
    _, headers, body = await get("/static/0123456789ab/one.js")
    assert "content-encoding" not in headers
    assert (headers["vary"], body) == ("Accept-Encoding", a_file.read_bytes())


async def test_part_of_a_file_is_not_compressed(a_file):
    status, headers, body = await get("/static/0123456789ab/one.js", accept_encoding="gzip", range="bytes=0-5")
    assert (status, body, "content-encoding" in headers) == (206, b"export", False)


@pytest.mark.parametrize("path", ["one.js", "ffffffffffff/one.js"], ids=["plain", "another release"])
async def test_what_no_release_names_is_asked_for_again(a_file, path):
    status, headers, _ = await get(f"/static/{path}", accept_encoding="gzip")
    assert (status, headers["cache-control"]) == (200, "no-cache")


async def test_a_file_that_changes_under_the_process_is_not_kept_and_not_the_old_one(a_file):
    await get("/static/0123456789ab/one.js", accept_encoding="gzip")
    a_file.write_text("changed")
    status = a_file.stat()
    os.utime(a_file, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    _, headers, body = await get("/static/0123456789ab/one.js", accept_encoding="gzip")
    assert (headers["cache-control"], gzip.decompress(body)) == ("no-cache", b"changed")


async def test_a_compressed_file_that_did_not_change_is_not_sent_again(a_file):
    _, headers, _ = await get("/static/one.js", accept_encoding="gzip")
    status, again, body = await get("/static/one.js", accept_encoding="gzip", if_none_match=headers["etag"])
    assert (status, body, again["cache-control"]) == (304, b"", "no-cache")


@pytest.mark.parametrize("path", ["0123456789ab/one.js", "../../db", "/etc/passwd", ""])
async def test_a_release_opens_nothing_else(a_file, path):
    assert (await get(f"/static/0123456789ab/{path}"))[0] == 404


def test_the_modules_of_a_page_are_those_that_it_imports():
    found = modules_under(PAGE)
    assert found[0] == PAGE
    assert {"frontend/fold.js", "frontend/vendor/lit.js", "frontend/session/table/bulk.js"} < set(found)
    assert len(found) == len(set(found))
    for name in found:
        for path in re.findall(r'from "(\.[^"]+)"', (MODULES / name).read_text()):
            assert os.path.normpath(f"{os.path.dirname(name)}/{path}") in found


def test_a_page_asks_for_each_module_once_and_for_all_before_the_first_runs():
    page = Template(
        "{% load modules %}{% module 'frontend/waiting.js' %}{% block b %}{% module 'frontend/session/page.js' %}{% endblock %}"
    )
    text = page.render(Context())
    asked = re.findall(r'<link rel="modulepreload" href="([^"]+)">', text)
    assert sorted(asked) == sorted(static(name) for name in {*modules_under("frontend/waiting.js"), *modules_under(PAGE)})
    assert re.findall('<script type="module" src="([^"]+)">', text) == [static("frontend/waiting.js"), static(PAGE)]
