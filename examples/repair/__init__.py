"""A small repository with a failing test, and what a scripted model does about it. README.md says how it is run."""
