"""Browsers as devices: chromium behind an allow-list, a context for each attempt, and the tools that act on its pages.

May import: links, tools, artifacts, streams, devices, models, machines, progress, errors.
Begin at: agents.browsing.browser (a device's connection), agents.browsing.actions (what each tool does),
    agents.browsing.gateway (the one way out of a browser).
Called by: the engine, through agents.links.kinds; agents.apps registers it.

Playwright is imported when a browser is opened, and nowhere else.
"""
