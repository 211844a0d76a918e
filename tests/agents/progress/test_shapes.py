"""Two texts have one shape when they differ only in what changes by itself."""

import pytest

from agents.progress.shapes import TEXT_LIMIT, kept_part, numbered_part, shape_of, similar, similarity


def same(one: str, other: str) -> bool:
    return kept_part(shape_of(one)) == kept_part(shape_of(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("built at 10:03:04 in 3.2s\nall good", "all good\nbuilt at 11:03:09 in 14 s"),
        ("Sun Nov 22 17:58:43 UTC 2026", "Mon Nov 23 09:08:11 UTC 2026"),
        ("3 December 2026: closed", "14 December 2026: closed"),
        ("uptime 1h 2m 3s", "uptime 2h 40m 1s"),
        ("changed 2 minutes ago", "changed 1 hour ago"),
        ("[====>     ] 40%", "[=======>  ] 75 %"),
        ("request 17 of 40 at 10.0.0.7:8080", "request 18 of 40 at 10.0.0.9:8080"),
        ("wrote /tmp/tmpab12/x.txt", "wrote /tmp/tmpcd9/x.txt"),
        ('{"id": "a8f3e1c9d0", "items": []}', '{"id": "b1c2d3e4f5", "items": []}'),
        ("worker at 0x7f00aa is idle", "worker at 0x7f99bb is idle"),
        ("a\nb\nb", "b\na"),
    ],
)
def test_what_changes_by_itself_and_the_order_of_lines_do_not_count(one, other):
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("FAILED test_parse_1", "FAILED test_parse_2"),
        ("page of alice", "page of bob"),
        ("import os", "import sys"),
        ("no such file: a.txt", "no such file: b.txt"),
    ],
)
def test_other_words_are_another_shape(one, other):
    assert not same(one, other)


def test_a_counter_that_moves_shows_in_the_numbered_part_alone():
    one, other = shape_of("12 failed in 0.3s"), shape_of("11 failed in 0.4s")
    assert kept_part(one) == kept_part(other)
    assert numbered_part(one) != numbered_part(other)
    assert numbered_part(shape_of("12 failed in 9.9s")) == numbered_part(one)


def test_an_order_in_other_words_is_similar_and_another_order_is_not():
    order = "Open the Wikipedia page of the 1928 Olympics and tell me which country sent the fewest athletes"
    again = "Please open the Wikipedia page of the 1928 Olympics, and tell me which country sent fewest athletes"
    assert similar(shape_of(order), shape_of(again))
    assert not similar(shape_of(order), shape_of("Write a function that adds two matrices and test it with pytest"))


def test_the_estimate_is_near_the_share_of_words_in_common():
    words = [f"word{letter}{other}" for letter in "abcdefgh" for other in "ijklmnop"]
    for kept in (16, 32, 48):
        other = words[:kept] + [f"other{n}x" for n in range(64 - kept)]
        expected = kept / (128 - kept)
        assert similarity(shape_of(" ".join(words)), shape_of(" ".join(other))) == pytest.approx(expected, abs=0.25)


def test_what_says_nothing_has_no_shape_and_is_like_nothing():
    assert shape_of(" \n ") == ""
    assert not similar("", "")
    assert not similar(shape_of("a word"), "")


def test_shapes_of_two_versions_are_never_alike():
    shape = shape_of("the same text")
    assert not similar(shape, f"0{shape[1:]}")


def test_a_shape_is_short_however_long_the_text_and_its_middle_counts():
    begins, ends = "begin\n" * TEXT_LIMIT, "end\n" * TEXT_LIMIT
    assert len(shape_of(begins + ends)) <= 64
    assert not same(f"{begins[:2000]} middle {ends[:2000]}" * 2, f"{begins[:2000]} other {ends[:2000]}" * 2)


@pytest.mark.parametrize("text", ["\ud800", "1" * 9_000, "é" * 9_000, "\x00", "((" * 9_000, "42"])
def test_any_text_has_a_shape(text):
    assert same(text, text)
    assert 0 < len(shape_of(text)) <= 64
