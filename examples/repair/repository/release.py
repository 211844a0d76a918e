"""Says which version would be released. It stands for a command that nobody wants made without being asked."""

import hashlib
import json
from pathlib import Path

version = hashlib.sha256(Path("prices.py").read_bytes()).hexdigest()[:8]
Path("released.json").write_text(json.dumps({"version": version}))
print(json.dumps({"version": version}))
