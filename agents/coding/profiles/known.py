"""The coding agents that are known: what each is configured by, so that it asks before it writes or runs anything. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agents.coding.profiles.ends import exit_in_metadata, exit_in_output, exit_in_text
from agents.coding.profiles.profile import HOME, KEY, AgentSettings, CodingAgent

PROVIDER = "orrery"
"""What the one provider of models is called in a configuration that we write."""
WRITES = ("Bash", "Edit", "MultiEdit", "Write", "NotebookEdit", "WebFetch", "WebSearch", "KillShell", "mcp__*")
"""Tools of Claude Code that need leave."""
QWEN_WRITES = ("Bash", "Edit", "WriteFile", "WebFetch", "WebSearch")
"""The same of Qwen Code, which else runs commands that only read unasked."""


def _json(value: Any) -> str:
    return json.dumps(value, indent=1)


# OpenCode


def _opencode_files(settings: AgentSettings) -> Mapping[str, str]:
    asks = dict.fromkeys(("edit", "bash", "webfetch", "websearch", "external_directory", "doom_loop"), "ask")
    told: dict[str, Any] = {
        "autoupdate": False, "share": "disabled", "snapshot": False, "plugin": [], "formatter": False, "lsp": False,
        "permission": {"*": "ask", **dict.fromkeys(("read", "glob", "grep", "list", "todowrite", "todoread"), "allow"),
                       **asks, "task": "deny"},
    }  # fmt: skip
    if settings.model:
        told |= {"model": f"{PROVIDER}/{settings.model}", "small_model": f"{PROVIDER}/{settings.model}"}
        told["enabled_providers"] = [PROVIDER]
        told["provider"] = {
            PROVIDER: {
                "npm": "@ai-sdk/openai-compatible", "name": "Orrery", "models": {settings.model: {"name": settings.model}},
                "options": {"baseURL": settings.base_url, "apiKey": f"{{env:{KEY}}}"},
            }
        }  # fmt: skip
    return {".config/opencode/opencode.json": _json(told)}


def _opencode_env(settings: AgentSettings) -> Mapping[str, str]:
    switches = (
        "DISABLE_PROJECT_CONFIG", "DISABLE_AUTOUPDATE", "DISABLE_MODELS_FETCH", "DISABLE_LSP_DOWNLOAD", "DISABLE_SHARE",
        "DISABLE_DEFAULT_PLUGINS", "DISABLE_CLAUDE_CODE", "DISABLE_EXTERNAL_SKILLS",
    )  # fmt: skip
    # Version 1.18 runs a plugin that opencode.json of a workspace names all the same: that file is covered (starting).
    return {"OPENCODE_PURE": "1", **{f"OPENCODE_{switch}": "1" for switch in switches}}


# Claude Code, by its adapter


def _claude_files(settings: AgentSettings) -> Mapping[str, str]:
    return {".claude/settings.json": _json(_claude_settings()), ".claude.json": _json({"hasCompletedOnboarding": True})}


def _claude_settings() -> dict[str, Any]:
    return {"permissions": {"ask": list(WRITES), "deny": ["Task"]}, "disableAllHooks": True}


def _claude_env(settings: AgentSettings) -> Mapping[str, str]:
    found = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_ERROR_REPORTING": "1"}
    if settings.base_url:
        found["ANTHROPIC_BASE_URL"] = settings.base_url
    if settings.model:
        found |= {"ANTHROPIC_MODEL": settings.model, "ANTHROPIC_SMALL_FAST_MODEL": settings.model}
    return found


CLAUDE_SESSION: Mapping[str, Any] = {
    "claudeCode": {"options": {"settingSources": [], "settings": _claude_settings(), "disallowedTools": ["Task"]}}
}
"""Nothing that lies in a workspace counts: neither its rules of what is allowed nor its hooks."""


# Qwen Code and Gemini CLI, which stem from one program: what their system settings say, no settings in a workspace change


def _gemini_settings(auth: str) -> dict[str, Any]:
    return {
        "general": {"disableAutoUpdate": True, "disableUpdateNag": True, "enableAutoUpdate": False},
        "privacy": {"usageStatisticsEnabled": False}, "telemetry": {"enabled": False},
        "tools": {"approvalMode": "default", "autoAccept": False, "allowed": []}, "hooksConfig": {"enabled": False},
        "disableAllHooks": True,
        "security": {
            "folderTrust": {"enabled": True, "featureEnabled": True}, "disableYoloMode": True, "auth": {"selectedType": auth},
        },
    }  # fmt: skip


def _qwen_files(settings: AgentSettings) -> Mapping[str, str]:
    told = _json(_gemini_settings("openai") | {"permissions": {"allow": [], "ask": list(QWEN_WRITES), "deny": ["Agent"]}})
    return {".qwen/settings.json": told, ".qwen/system.json": told}


def _qwen_env(settings: AgentSettings) -> Mapping[str, str]:
    return {
        "OPENAI_BASE_URL": settings.base_url, "OPENAI_MODEL": settings.model,
        "QWEN_CODE_SYSTEM_SETTINGS_PATH": f"{HOME}/.qwen/system.json",
    }  # fmt: skip


def _gemini_files(settings: AgentSettings) -> Mapping[str, str]:
    told = _json(_gemini_settings("gemini-api-key"))
    return {".gemini/settings.json": told, ".gemini/system.json": told, ".gemini/policies/orrery.toml": GEMINI_POLICY}


GEMINI_POLICY = """
[[rule]]
toolName = "run_shell_command"
argsPattern = "."
decision = "ask_user"
priority = 999

[[rule]]
toolName = "invoke_agent"
decision = "deny"
priority = 999
"""
"""It runs commands unasked that it knows as harmless, but for those that a rule with a pattern is about."""


def _gemini_env(settings: AgentSettings) -> Mapping[str, str]:
    return {
        "GOOGLE_GEMINI_BASE_URL": settings.base_url, "GEMINI_MODEL": settings.model,
        "GEMINI_CLI_SYSTEM_SETTINGS_PATH": f"{HOME}/.gemini/system.json",
    }  # fmt: skip


# Codex


CODEX_WITHOUT = ("apps", "goals", "hooks", "multi_agent", "plugins", "remote_plugin")
"""Features that are left out: what asks elsewhere, runs what a workspace says, or works beside the one that is followed."""


def _codex_files(settings: AgentSettings) -> Mapping[str, str]:
    # Its own walls cannot stand within ours: with "untrusted" it asks for all but what only reads.
    lines = ['approval_policy = "untrusted"', 'sandbox_mode = "danger-full-access"', "check_for_update_on_startup = false"]
    lines += ['web_search = "disabled"']
    if settings.model:
        lines += [f"model = {json.dumps(settings.model)}", f'model_provider = "{PROVIDER}"']
    lines += ["[analytics]", "enabled = false", "[features]", *(f"{name} = false" for name in CODEX_WITHOUT)]
    if settings.base_url:
        lines += [
            f"[model_providers.{PROVIDER}]", 'name = "Orrery"', f"base_url = {json.dumps(settings.base_url)}",
            f'env_key = "{KEY}"', 'wire_api = "responses"',
        ]  # fmt: skip
    return {".codex/config.toml": "\n".join(lines) + "\n"}


PROFILES: Mapping[str, CodingAgent] = {
    each.name: each
    for each in (
        CodingAgent(
            "opencode", "OpenCode", ("opencode", "acp"), 390, _opencode_files, _opencode_env, exit_in_metadata,
        ),
        CodingAgent(
            "claude", "Claude Code", ("claude-agent-acp",), 300, _claude_files, _claude_env, exit_in_text,
            session=CLAUDE_SESSION,
        ),
        CodingAgent(
            "qwen", "Qwen Code", ("qwen", "--acp", "--approval-mode", "default"), 430, _qwen_files, _qwen_env, exit_in_text,
        ),
        CodingAgent(
            "gemini", "Gemini CLI", ("gemini", "--acp"), 430, _gemini_files, _gemini_env, exit_in_text,
        ),
        CodingAgent(
            "codex", "Codex", ("codex-acp",), 84, _codex_files, lambda settings: {}, exit_in_output,
        ),
    )
}  # fmt: skip
"""By name."""
KEYS: Mapping[str, str] = {
    "claude": "ANTHROPIC_API_KEY", "qwen": "OPENAI_API_KEY", "gemini": "GEMINI_API_KEY", "opencode": KEY, "codex": KEY,
}  # fmt: skip
"""The variable in which each looks for the key of its model."""
