"""Browsers as devices, with a real chromium and real servers on this host."""
