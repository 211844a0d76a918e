"""An interaction at work: how it begins, which of its tasks start where, how attempts end, and how the whole ends.

It may import all of constellations but its doors (api, mcp, admin, management), and all of agents but theirs. The engine
calls it, by what `handler` registers. Three entry points: `handler.ConstellationHandler` prepares a request and opens the
work, `run.ConstellationWork` decides in the turns of its session, `planner.prepare` reads a plan.

From the bottom up: `context`, which all look at; `rules`, `planner`, `lost` and `assignments`; the other parts, which do not
know each other; `run`, which alone passes on what they answer.
"""
