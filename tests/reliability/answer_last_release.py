"""What people say to the sessions of data/last_release.sql.gz: they allow, answer and resume. A process of its own."""

from __future__ import annotations

import os

import django


def main() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "project.settings"
    django.setup()
    from agents.models import Approval, Session
    from agents.services.approvals import approval_decide
    from constellations.models import Constellation
    from constellations.services.lifecycle import constellation_resume

    by = f"user:{Session.objects.latest('pk').owner_id}"
    for approval in Approval.objects.filter(state="waiting").order_by("kind"):  # an edit before what it is behind ends
        answer = "yes" if approval.kind == "question" else None
        approval_decide(approval.pk, "approve", by=by, digest=approval.digest, answer=answer)
    constellation_resume(Constellation.objects.get(state="PAUSED").pk, by=by)


if __name__ == "__main__":
    main()
