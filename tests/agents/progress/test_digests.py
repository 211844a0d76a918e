"""Errors and arguments are equal when the difference does not matter."""

import pytest

from agents.progress.digests import arguments_digest, error_digest, normalised_error
from agents.progress.evidence import evidence_of
from agents.progress.settings import Settings


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("timed out after 3.21s", "timed out after 12 s"),
        ("2026-11-21T03:04:05.123Z boom", "2026-11-22 10:00:00 boom"),
        ("cannot open /tmp/pytest-of-me/x1/a.txt", "cannot open /tmp/tmpab12/a.txt"),
        ("request 7f3a9c1e-1111-2222-3333-444455556666 failed", "request 00000000-aaaa-bbbb-cccc-ddddeeeeffff failed"),
        ("object at 0x7f00aa", "object at 0x7f99bb"),
        ("killed pid 4711", "killed pid 12"),
        ("bad nonce=abc123def", "bad nonce=fed321cba"),
        ("commit 03f98101 is gone", "commit f388f48a is gone"),
        ("Error:  no   space", "error: no space"),
        ("/home/ada/work/a.py missing", "/home/bob/work/a.py missing"),
    ],
)
def test_what_changes_from_try_to_try_does_not_make_another_error(one, other):
    assert error_digest(one) == error_digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("no such file: a.txt", "no such file: b.txt"),
        ("expected 3 arguments", "expected 4 arguments"),
        ("/tmp/x/a.txt missing", "/tmp/x/b.txt missing"),
        ("401 Unauthorized", "403 Forbidden"),
        ("3 tests failed", "2 tests failed"),
    ],
)
def test_what_tells_errors_apart_is_kept(one, other):
    assert error_digest(one) != error_digest(other)


def test_the_targets_own_name_is_no_difference():
    assert error_digest("a.txt: not found", "a.txt") == error_digest("b.txt: not found", "b.txt")
    assert normalised_error("a.txt: not found", "a.txt") == "<target>: not found"


def test_no_error_has_no_digest():
    assert error_digest("  ") == ""


def test_the_order_of_arguments_does_not_matter_but_their_values_do():
    assert arguments_digest({"a": 1, "b": ["x "]}) == arguments_digest({"b": ["x"], "a": 1})
    assert arguments_digest({"a": 1}) != arguments_digest({"a": 2})


def test_evidence_keeps_the_raw_error_and_knows_a_test_by_its_command():
    row = evidence_of("bash", "pytest -q", {"command": "pytest -q"}, Settings(), error="FAILED in 0.12s")
    assert (row.kind, row.success, row.raw_error) == ("test", False, "FAILED in 0.12s")
    assert row.error == error_digest("FAILED in 9.99s")


def test_an_empty_result_is_nothing_observed():
    assert evidence_of("bash", "mkdir a", {}, Settings(), result=" \n").outcome is None
    assert evidence_of("bash", "ls", {}, Settings(), result="a").outcome is not None
