"""What is kept of a command's output."""

import pytest

from agents.devices.output import EXCERPT_CHARACTERS, RESULT_BYTES, CommandOutput, read_json_line


def kept(*pieces, stream="stdout"):
    output = CommandOutput(lambda text: None, 10 * RESULT_BYTES)
    for piece in pieces:
        output.put(stream, piece)
    return output


@pytest.mark.parametrize(
    ("pieces", "result"),
    [
        ([b""], None),
        ([b'{"a": 1}'], {"a": 1}),
        ([b'{"a"', b": 1}\n\n"], {"a": 1}),
        ([b"3\nno json\n"], None),
        ([b"text\r\n[1]\r\n"], [1]),
        ([b'"' + b"x" * (RESULT_BYTES - 2) + b'"'], "x" * (RESULT_BYTES - 2)),
        ([b'"' + b"x" * RESULT_BYTES + b'"'], None),
        ([b"1" * 100_000] * 9, None),
    ],
)
def test_the_result_is_the_last_line_if_it_is_json_of_bounded_size(pieces, result):
    assert kept(*pieces).result() == result


@pytest.mark.parametrize(
    "line", [b"NaN", b'{"a": Infinity}', b"1e999", b'"\\u0000"', b'"\\ud800"', b"[" * 100_000, b"9" * 10_000, b"\xff"]
)
def test_json_that_a_database_refuses_is_no_result(line):
    assert read_json_line(line) is None


def test_an_error_quotes_the_last_lines_of_standard_error():
    output = kept(*(f"line {n}\n".encode() for n in range(9)), stream="stderr")
    output.put("stdout", b"said\n")
    assert output.excerpt() == "line 4\nline 5\nline 6\nline 7\nline 8"


def test_an_error_quotes_standard_output_when_there_is_no_other_bounded():
    assert kept(b"said\n").excerpt() == "said"
    assert len(kept(b"x" * 5000).excerpt()) == EXCERPT_CHARACTERS
    assert kept().excerpt() == ""


def test_a_character_the_stream_left_unfinished_is_told_at_its_end():
    told = []
    output = CommandOutput(told.append, 100)
    output.put("stdout", b"a\xc3")
    output.end("stdout")
    assert "".join(told) == "a\ufffd"


def test_more_than_may_be_printed_is_not_taken():
    told = []
    output = CommandOutput(told.append, 5)
    assert output.put("stdout", b"123")
    assert not output.put("stderr", b"456")
    assert "".join(told) == "12345"
