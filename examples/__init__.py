"""Examples: plans, and the commands and data they need."""
