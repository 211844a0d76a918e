"""A coding agent mends a failing test, and what a scripted model has it do. docs/coding-agents.md says how it is run."""
