"""The web server's application; it knows the benchmarks' tools, as the runners do, so that plans may name them."""

from project.asgi import application  # sets Django up, before anything of it is imported

from benchmarks.inside import tools  # isort: skip

__all__ = ["application", "tools"]
