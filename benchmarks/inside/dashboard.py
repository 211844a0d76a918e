"""What the dashboard is measured with: sessions to look at, and a way in."""

from django.contrib.auth.models import User

from benchmarks.inside import load
from frontend.logins.links import make_login_link


def finished(tasks: int) -> int:
    """A session whose layered graph of no-ops has been carried out."""
    session = load.submit(load.layered(tasks))
    Finishing(session).run()
    return session


class Finishing(load.Measured):
    """Stops when that session has done what it was asked: another one that rests is no reason to."""

    def __init__(self, session: int):
        super().__init__()
        self._session = session

    def rested(self, stream: int) -> None:
        if stream == self._session:
            super().rested(stream)


def empty() -> int:
    return load.session()


def post(session: int, tasks: int, tool: str) -> int:
    """Post a layered graph for the runner beside."""
    return load.submit(load.layered(tasks, tool), session)


def post_chain(session: int, tasks: int, seconds: float) -> int:
    """Post a chain of pauses."""
    return load.submit(load.chain(tasks, "pause", seconds=seconds), session)


def login_link(port: int) -> str:
    return make_login_link(User.objects.get(), f"http://127.0.0.1:{port}")
