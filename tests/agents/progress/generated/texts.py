"""What tools answer: reports of tests, build logs, pages, listings, with parts that differ from call to call."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

NOUNS = (
    "invoice", "parser", "session", "router", "payment", "cache", "ledger", "profile", "catalog", "webhook", "schema", "queue",
    "report", "token", "mailer", "search", "upload", "quota", "region", "tariff", "voucher", "shipment", "roster", "ticket",
)  # fmt: skip
VERBS = ("load", "merge", "render", "resolve", "validate", "encode", "refresh", "split", "apply", "collect")
RUNNERS = {"pytest": "python -m pytest -q", "jest": "npm test", "go": "gotestsum", "cargo": "cargo test"}


class Texts:
    """One world's clock, names and volatile parts. Every name comes once, so that what is new reads as new."""

    def __init__(self, random: Random):
        self.random = random
        self.seconds = random.randrange(8 * 3600, 20 * 3600)
        self.names: set[str] = set()

    def name(self) -> str:
        """A name that this world has not heard yet, such as `merge_invoice`."""
        name = f"{self.random.choice(VERBS)}_{self.random.choice(NOUNS)}"
        while name in self.names:
            name += f"_{self.random.choice(NOUNS)}"
        self.names.add(name)
        return name

    def path(self, suffix: str = "py") -> str:
        return f"{self.random.choice(('src', 'lib', 'app', 'services'))}/{self.random.choice(NOUNS)}/{self.name()}.{suffix}"

    def clock(self) -> str:
        """The time of day; it goes on with every look."""
        self.seconds += self.random.randint(1, 90)
        hours, rest = divmod(self.seconds % 86400, 3600)
        return f"2026-11-22T{hours:02}:{rest // 60:02}:{rest % 60:02}Z"

    def duration(self) -> str:
        return f"{self.random.uniform(0.02, 9):.2f}s"

    def identifier(self, size: int = 12) -> str:
        return f"{self.random.getrandbits(size * 4):0{size}x}"

    def temporary(self) -> str:
        return f"/tmp/{self.random.choice(('tmp', 'build-', 'run.'))}{self.identifier(8)}"

    def test_report(self, runner: str, module: str, failing: Sequence[str], passed: int) -> str:
        """A report in the form of the runner; tests run in parallel, so those that failed come in any order."""
        failing = self.random.sample(failing, len(failing))
        if runner == "pytest":
            head = [f"collected {len(failing) + passed} items", f"rootdir: {self.temporary()}"]
            body = [f"FAILED {module}::{test} - {reason_of(test)}" for test in failing]
            counts = ([f"{len(failing)} failed"] if failing else []) + ([f"{passed} passed"] if passed else [])
            return "\n".join([*head, *body, f"{', '.join(counts)} in {self.duration()}"])
        if runner == "jest":
            body = [f"  ● {test} ({self.random.randint(2, 90)} ms)\n    {reason_of(test)}" for test in failing]
            head = f"{'FAIL' if failing else 'PASS'} {module}"
            return "\n".join([head, *body, f"Time: {self.duration()}", f"Tests: {len(failing)} failed, {passed} passed"])
        if runner == "go":
            body = [f"--- FAIL: {test} ({self.duration()})\n    {reason_of(test)}" for test in failing]
            counts = f"{len(failing) + passed} tests, {len(failing)} failures"
            return "\n".join([*body, f"DONE {counts} in {self.duration()}"])
        body = [f"test {test} ... FAILED\n{reason_of(test)}" for test in failing]
        done = f"finished in {self.duration()}"
        return "\n".join([*body, f"test result: {len(failing)} failed; {passed} passed; {done}"])

    def build_log(self, parts: Sequence[str], error: str = "") -> str:
        lines = [f"[{self.clock()}] compiling {part} -> {self.temporary()}.o ({self.duration()})" for part in parts]
        return "\n".join([*self.random.sample(lines, len(lines)), f"error: {error}" if error else "build finished"])

    def listing(self, names: Sequence[str]) -> str:
        return "\n".join(f"-rw-r--r-- 1 dev dev {200 + sum(map(ord, name))} {name}" for name in names)

    def web_page(self, title: str, paragraphs: Sequence[str]) -> str:
        """A page as a browser gives it: its words stay, its nonce, time and advertisement do not."""
        return "\n".join([
            f"<html><head><title>{title}</title><meta name=csrf content={self.identifier(24)}></head>",
            *(f"<p>{paragraph}</p>" for paragraph in paragraphs),
            f"<aside>{self.random.randint(2, 99)} people are reading this</aside>",
            f"<footer>rendered at {self.clock()} in {self.duration()}, request {self.identifier()}</footer></html>",
        ])  # fmt: skip

    def json_page(self, items: Sequence[str], cursor: str = "") -> str:
        rows = ", ".join(f'{{"id": "{item}", "state": "open"}}' for item in items)
        return f'{{"request_id": "{self.identifier()}", "at": "{self.clock()}", "items": [{rows}], "next": "{cursor}"}}'

    def source(self, path: str, revision: int, first: int = 1, lines: int = 12) -> str:
        """Lines of a file at one of its revisions: the same each time it is read."""
        words = Random(f"{path} {revision} {first}")
        return "\n".join(
            f"{number:>6}\t{words.choice(VERBS)}({words.choice(NOUNS)}, {words.choice(NOUNS)}_{words.randrange(99)})"
            for number in range(first, first + lines)
        )


def reason_of(test: str) -> str:
    """What the test says when it fails: its own sentence, the same each time."""
    words = Random(test)
    return words.choice((
        f"AssertionError: expected {words.choice(NOUNS)} to equal {words.choice(NOUNS)}",
        f"KeyError: '{words.choice(NOUNS)}'",
        f"TypeError: {words.choice(VERBS)}() takes {words.randint(1, 3)} arguments but {words.randint(4, 6)} were given",
        f"ValueError: unknown {words.choice(NOUNS)} '{words.choice(NOUNS)}'",
    ))  # fmt: skip
