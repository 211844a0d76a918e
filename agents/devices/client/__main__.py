"""`python -m agents.devices.client`."""

import sys

from agents.devices.client.main import main

sys.exit(main())
