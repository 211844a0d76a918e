"""What a policy may say of a call: to the row, to whoever judges by it, and to whoever writes one. Pure."""

from __future__ import annotations

DECISIONS = ("allow", "ask", "deny")
"""From the mildest to the strictest."""
