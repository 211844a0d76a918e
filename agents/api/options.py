"""What OPTIONS says of an address under /api/. The OpenAPI description has all the rest."""

from __future__ import annotations

from typing import Any

from rest_framework.metadata import BaseMetadata
from rest_framework.request import Request


class Address(BaseMetadata):
    """Its name and methods. The framework's own asks each view for the form of its bodies, which few of ours have."""

    def determine_metadata(self, request: Request, view: Any) -> dict[str, Any]:
        return {"name": view.get_view_name(), "description": view.get_view_description(), "methods": view.allowed_methods}
