from django.apps import AppConfig


class AgentsConfig(AppConfig):
    name = "agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from agents import jobs
        from agents.browsing.browser import register_kind_of_device
        from agents.coding import opening as coding_agents
        from agents.models import (
            Actor,
            Agent,
            Approval,
            Artifact,
            Budget,
            Device,
            Evidence,
            InboxItem,
            Loop,
            ModelCall,
            ModelProfile,
            PhaseRecord,
            Policy,
            Session,
        )  # fmt: skip
        from agents.services import budgets  # noqa: F401  registers what approving one does
        from agents.streams.tables import register_table
        from agents.tools import command, files  # noqa: F401  register their tools
        from agents.toolservers import opening as tool_servers

        register_table("session", Session, own=True)
        register_table("device", Device, own=True, outside=("used", "queued"))
        register_table("actor", Actor)
        register_table("inbox", InboxItem)
        register_table("agent", Agent)
        register_table("loop", Loop)
        register_table("evidence", Evidence)
        register_table("phase", PhaseRecord)
        register_table("approval", Approval)
        register_table("policy", Policy)
        register_table("model_profile", ModelProfile)
        register_table("model_call", ModelCall)
        register_table("budget", Budget)
        register_table("artifact", Artifact)
        tool_servers.register()
        coding_agents.register()
        register_kind_of_device()
        jobs.connect()
