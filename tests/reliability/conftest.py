"""Real clusters of runners, killed at the end of their test whatever happens."""

from collections.abc import Callable, Iterator

import pytest

from agents.services.devices import device_create
from tests.reliability.cluster import Cluster, Marks, marked, until


@pytest.fixture
def clusters(transactional_db, state_dir) -> Iterator[Callable[..., Cluster]]:
    """Makes clusters; none of their processes, and no command of theirs, outlives the test."""
    made: list[Cluster] = []

    def make(**options) -> Cluster:
        made.append(Cluster(state_dir, **options))
        return made[-1]

    yield make
    for cluster in made:
        cluster.kill()
    until(lambda: not marked(), "the last commands end by themselves")


@pytest.fixture
def marks(state_dir) -> Marks:
    return Marks(state_dir)


@pytest.fixture
def wide(transactional_db) -> list[str]:
    """Two devices with eight slots each."""
    return [device_create(name, max_concurrent=8, by="system").name for name in ("east", "west")]
