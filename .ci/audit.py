"""Does a library that is pinned here have a known vulnerability? pip-audit asks OSV; where that does not answer, this says so.

    .ci/audit.py [KNOWN] [URL]

Exit 1 where one is found that KNOWN (.ci/known_vulnerabilities.txt) does not accept, or where KNOWN makes no sense.
"""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, date, datetime
from pathlib import Path

HERE = Path(__file__).resolve().parent
PINNED = ("requirements.txt", "requirements-browsers.txt", "requirements-dev.txt", "examples/requirements.txt")
SERVICE = "https://api.osv.dev/v1/query"
SOCKET_S = 10
WHOLE_S = 150
"""Seconds that one answer, and all of them together, may take."""


class Senseless(Exception):
    """A line of the list of known ones cannot be read."""


def accepted(text: str, today: date) -> list[str]:
    """Ids that are accepted today. A line is `ID UNTIL REASON`, UNTIL a date; after it the finding counts again."""
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            name, until, _ = line.split(maxsplit=2)
            last = date.fromisoformat(until)
        except ValueError:
            raise Senseless(
                f"line {number} is not ID UNTIL REASON, such as `PYSEC-2026-1 2027-01-31 not reached`: {line}"
            ) from None
        found += [name] if today <= last else []
    return found


def ask(ignored: list[str], url: str) -> dict | str:
    """What pip-audit says of everything that is pinned, or why nothing was said."""
    argv = [sys.executable, "-m", "pip_audit", "--vulnerability-service", "osv", "--osv-url", url, "--no-deps", "--disable-pip"]
    argv += ["--progress-spinner", "off", "--timeout", str(SOCKET_S), "--format", "json", "--desc", "off"]
    argv += [each for name in PINNED for each in ("--requirement", str(HERE.parent / name))]
    argv += [each for name in ignored for each in ("--ignore-vuln", name)]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=WHOLE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"the service took more than {WHOLE_S} s"
    try:
        return json.loads(done.stdout)
    except ValueError:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        return lines[-1] if lines else f"pip-audit ended with {done.returncode} and said nothing"


def main(known: Path, url: str) -> int:
    try:
        ignored = accepted(known.read_text(), datetime.now(UTC).date())
    except Senseless as error:
        print(f"{known}: {error}", file=sys.stderr)
        return 1
    answer = ask(ignored, url)
    if isinstance(answer, str):
        print(f"vulnerable libraries: not checked: {answer[:300]}")
        return 0
    libraries = answer["dependencies"]
    for each in libraries:
        if "skip_reason" in each:
            print(f"vulnerable libraries: not checked: {each['name']}: {each['skip_reason']}")
    found = [(each, flaw) for each in libraries for flaw in each.get("vulns", ())]
    for library, flaw in found:
        mended = ", ".join(flaw["fix_versions"]) or "no version"
        print(f"{library['name']} {library['version']}: {flaw['id']}, mended by {mended}", file=sys.stderr)
    print(f"vulnerable libraries: {len(found)} findings in {len(libraries)}; accepted for now: {', '.join(ignored) or 'none'}")
    return 1 if found else 0


if __name__ == "__main__":
    given = sys.argv[1:]
    sys.exit(main(Path(given[0]) if given else HERE / "known_vulnerabilities.txt", given[1] if len(given) > 1 else SERVICE))
