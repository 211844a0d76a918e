"""What attacks share: real clusters of runners, as the tests of reliability have them, and a constellation with gates."""

from tests.attacks.gated import found, session  # noqa: F401
from tests.reliability.conftest import clusters, marks, wide  # noqa: F401
