"""What is hidden, whatever it is written in and wherever it is cut; and what never is."""

import base64
import html
import json
import shlex
import uuid
from hashlib import sha256
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.masks.masking import MARK, SHORTEST, Masker, is_hidden, why_unmaskable

SECRET = 'vErY-sEcReT-4711 <&> "quoted" \\ äö'
PLAIN = "vErYsEcReTtOkEn4711"
MASKER = Masker([SECRET, PLAIN])
HARMLESS = [
    "nothing to see here", sha256(b"x").hexdigest(), str(uuid.UUID(int=7)), "a" * 500, "sha256:" + sha256(b"y").hexdigest(),
    "task-abcdefghijklmnopqrstuvwxyz", "risk-assessment-of-the-northern-regions", "disk-0123456789abcdefghijkl", "eyJ",
    "the bearer of good news", "orr_51e60438847", "token:orr_51e60438847", "http://127.0.0.1:8000/login/", "AKIA",
    "flown by ASIANA",
    "hf_transfer",
    "https://example.com:8443/a@b", "xoxo-love", "Authorization: required",
    "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
]  # fmt: skip
KEYS = [
    "sk-proj-abcdefghijklmnop1234567890", "sk-ant-api03-abcdefghijklmnopqr", "ghp_0123456789abcdefghij0123456789abcdef",
    "github_pat_11ABCDEFG0123456789_abcdefghij", "xoxb-123456789012-abcdefghij", "AKIAIOSFODNN7EXAMPLE", "ASIAIOSFODNN7EXAMPLE",
    "AIzaSyA0123456789abcdefghijklmnopqrstuv", "glpat-abcdefghij0123456789", "npm_abcdefghijklmnopqrstuvwxyz0123456789",
    "hf_abcdefghijklmnopqrstuvwxyz01234567", "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dBjftJeZ4CVPmB92K27uhbUJU1p1r_wW1g",
    "orr_51e60438847a2655a8ee5ac5e1bee3261b0b4dfc202fa7508c4ae454e341d020", "sk_live_abcdefghijklmnop1234",
    "pypi-AgEIcHlwaS5vcmcCJDU3", "gsk_abcdefghijklmnopqrstuvwxyz", "hvs.CAESIJ0123456789abcdefgh",
]  # fmt: skip
BODY = "Proc-Type: 4,ENCRYPTED\n\nMIIEvQIBADANBgkqhkiG9w0BAQ+/\nabc="
PEM = f"-----BEGIN RSA PRIVATE KEY-----\n{BODY}\n-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "around", ["{}", "a {} b", "x={}", '"{}"', "\n{}\n", "<{}>", "({})", "_{}", "ä{}ö", "\\n{}\\n", "\\u003c{}"]
)
def test_a_key_of_a_known_form_is_hidden_wherever_it_stands(key, around):
    text = around.format(key)
    assert MASKER.text(text) == around.format(MARK * len(key))


@pytest.mark.parametrize("text", HARMLESS)
def test_what_only_looks_random_or_alike_stays(text):
    assert MASKER.text(text) is text


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdefghijklmnop", "Authorization: Bearer "),
        ('{"authorization": "Basic dXNlcjpwYXNz"}', '"Basic '),
        ("x-api-key: 12345678", "x-api-key: "), ("postgresql://orrery:hunter22@db:5432/x", "@db:5432/x"),
        ("redis://:hunter22@h/0", "redis://:"), ("https://hooks.slack.com/services/T0000/B0000/abcdefghijk", "/services/"),
        ("http://h/login/link/3.c9x2ab-0123456789abcdef0123456789abcdef", "/login/link/"),
    ],
)  # fmt: skip
def test_what_stands_behind_a_telling_word_is_hidden(text, left):
    masked = MASKER.text(text)
    assert left in masked
    assert is_hidden(masked)
    assert len(masked) == len(text)


def test_a_private_key_is_hidden_line_by_line_and_what_follows_is_not():
    masked = MASKER.text(f"before\n{PEM}\nafter, and more")
    assert masked.splitlines()[0] == "before"
    assert masked.splitlines()[-1] == "after, and more"
    assert set(masked.removeprefix("before").removesuffix("after, and more")) == {MARK, "\n"}
    assert "MII" not in MASKER.text(PEM[:90])
    assert "MII" not in MASKER.text(json.dumps({"key": PEM}))


WRITTEN = {
    "as it is": lambda text: text,
    "JSON": json.dumps,
    "JSON in JSON": lambda text: json.dumps(json.dumps({"a": text})),
    "JSON of any letters": lambda text: json.dumps(text, ensure_ascii=False),
    "HTML": html.escape,
    "JSON in HTML": lambda text: html.escape(json.dumps([text])),
    "an address": quote,
    "a form": quote_plus,
    "a part of an address": lambda text: quote(text, safe=""),
    "a shell": shlex.quote,
    "base64": lambda text: base64.b64encode(text.encode()).decode(),
    "base64, 1 behind": lambda text: base64.b64encode(f"a{text}b".encode()).decode(),
    "base64, 2 behind": lambda text: base64.b64encode(f"ab{text}cd".encode()).decode(),
    "base64 of addresses": lambda text: base64.urlsafe_b64encode(f"user:{text}".encode()).decode(),
    "base64 in lines": lambda text: base64.encodebytes(text.encode() * 3).decode(),
    "hexadecimal": lambda text: text.encode().hex(),
    "HEXADECIMAL": lambda text: text.encode().hex().upper(),
}


@pytest.mark.parametrize("way", WRITTEN)
@pytest.mark.parametrize("secret", [SECRET, PLAIN])
def test_a_known_value_is_hidden_as_others_write_it(way, secret):
    text = WRITTEN[way](secret)
    masked = MASKER.text(f"x {text} y")
    assert len(masked) == len(text) + 4
    longest_left = max(map(len, masked[2:-2].replace("\n", MARK).split(MARK)), default=0)
    assert longest_left <= {"base64 of addresses": 7, "base64 in lines": 8, "JSON in JSON": 12, "JSON in HTML": 7}.get(way, 6)


@given(st.integers(0, len(PLAIN)), st.text(" .,:;\n\"'<>()[]", max_size=5), st.text(" .,:;\n\"'<>()[]", max_size=5))
def test_a_value_that_was_cut_is_hidden_as_far_as_it_is_long(place, before, after):
    head, tail = f"{before}{PLAIN[:place]}", f"{PLAIN[place:]}{after}"
    for text, part in ((head, PLAIN[:place]), (tail, PLAIN[place:])):
        assert (part in MASKER.text(text)) == (len(part) < SHORTEST)


@settings(max_examples=200)
@given(st.lists(st.sampled_from([SECRET, PLAIN, *KEYS[:3], "plain text ", "\n", "ä", " ", '"', "{", "\\"]), max_size=8))
def test_a_text_stays_as_long_and_is_masked_once_for_all(parts):
    text = " ".join(parts)
    masked = MASKER.text(text)
    assert len(masked) == len(text)
    assert MASKER.text(masked) == masked
    assert PLAIN not in masked
    assert SECRET not in masked


LEAVES = st.sampled_from([SECRET, PLAIN, KEYS[0], "x", 1, 2.5, None, True])
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "b"]), inner), max_leaves=8
)


@settings(max_examples=200)
@given(VALUES)
def test_json_stays_json_and_is_masked_string_by_string(value):
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False), json.dumps(value, indent=1)):
        assert json.loads(MASKER.json(text.encode())) == MASKER.value(value)
    clean = json.dumps("x").encode()
    assert MASKER.json(clean) is clean


def test_values_that_overlap_are_hidden_to_their_last_letter():
    masker = Masker(["abcdefgh-1234567", "1234567-ijklmnop", "abcdefgh-1234567-more-of-it"])
    assert set(masker.text("abcdefgh-1234567-ijklmnop")) == {MARK}
    assert set(masker.text("abcdefgh-1234567-more-of-it")) == {MARK}


def test_a_value_of_lines_is_hidden_line_by_line():
    masker = Masker(["first line of a secret\nshort\nsecond line of a secret\n"])
    assert masker.text("12:00 | second line of a secret") == f"12:00 | {MARK * 23}"


def test_a_key_that_was_cut_is_hidden_at_the_end_of_a_text():
    assert MASKER.text("the token ghp_0123") == f"the token {MARK * 8}"
    assert MASKER.text("the token ghp_0123...") == f"the token {MARK * 8}..."
    assert json.loads(MASKER.json(b'{"a": "the token ghp_0123"}')) == {"a": f"the token {MARK * 8}"}


@pytest.mark.parametrize("value", ["", "short", "password", "authorization_header", "x" * 70_000])
def test_what_could_not_be_told_from_ordinary_text_is_refused(value):
    assert (why_unmaskable(value) != "") is (value != "authorization_header")
    assert Masker([value]).text(f"a {value[:20]} b") == f"a {value[:20]} b" or value == "authorization_header"


def test_one_text_may_be_shown():
    token = KEYS[-5]
    shown = MASKER.json(json.dumps({"token": token, "name": token + " "}).encode(), shown=token)
    assert json.loads(shown) == {"token": token, "name": MARK * len(token) + " "}


def test_what_is_no_json_and_no_utf8_is_masked_as_it_is():
    assert MASKER.json(b'{"a": "' + PLAIN.encode()) == b'{"a": "' + (MARK * len(PLAIN)).encode()
    assert PLAIN.encode() not in MASKER.data(b"\xff\xfe" + PLAIN.encode() + b"\x80")
    assert MASKER.text("\ud800" + PLAIN) == "\ud800" + MARK * len(PLAIN)


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize(
    "text", ["ghp_0123456789abcdefghij0123456789", '{"log":"AIzaSy0', "known-secret-value-42", '{"clean":1}']
)
def test_many_texts_are_masked_as_each_by_itself(text, place):
    """Where one ends and the next begins a key may begin, and the rest of one may end."""
    masker = Masker(["known-secret-value-42"])
    texts = [b'{"letter":"a"}', b"1", b"letters"]
    texts[place:place] = [text.encode()]
    found = masker.jsons(texts)
    assert found == [masker.json(each) for each in texts]
    assert (found == texts) == ("clean" in text)
