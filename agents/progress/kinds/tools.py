"""Tools by kind: a table of the names that common agents and tool servers use, and words that tell where no name is known."""

import re
from functools import lru_cache
from typing import Literal, get_args


def set_of(words: str) -> frozenset[str]:
    """The words of a line, as the tables of this room are written."""
    return frozenset(words.split())


ToolKind = Literal["shell", "look", "change", "test", "poll", "plan", "think", "ask", "delegate", "other"]
KINDS: tuple[ToolKind, ...] = get_args(ToolKind)
"""`think` says something to itself, `ask` speaks to a person; neither does anything, and neither says anything new."""

KNOWN: dict[ToolKind, str] = {
    "shell": "bash sh zsh shell cmd powershell terminal run exec command execute_bash execute_command run_command "
    "run_shell_command run_terminal_cmd run_in_terminal local_shell exec_command shell_command container_exec",
    "change": "edit write multi_edit multiedit create create_file edit_file write_file write_to_file replace_in_file "
    "str_replace insert insert_content apply_patch apply_diff replace search_and_replace notebook_edit "
    "insert_edit_into_file create_new_file update_file delete_file move_file append_to_file replace_lines edit_block",
    "plan": "todo_write todowrite todo update_plan write_todos update_todo_list manage_todo_list set_plan plan "
    "task_tracker create_plan",
    "think": "think sequentialthinking sequential_thinking reflect",
    "ask": "ask_user ask_followup_question ask_user_question ask_human request_user_input elicit attempt_completion "
    "transfer_to_human_agents message_user notify_user",
    "delegate": "task agent dispatch_agent new_task spawn_agent subagent run_subagent delegate delegate_task send_input "
    "assistant coder computer_terminal file_surfer web_surfer handoff",
    "poll": "bash_output task_output read_terminal get_terminal_output write_stdin browser_wait_for await_task",
    "look": "ls cat pwd rg webfetch websearch read_file read_many_files list_dir list_directory search_file_content "
    "codebase_search file_search grep_search list_code_definition_names browser_snapshot browser_take_screenshot "
    "browser_console_messages browser_network_requests web_search google_web_search web_fetch read_resource",
}
"""Names as Claude Code, Codex, Gemini CLI, Qwen Code, OpenHands, SWE-agent, Cline, Roo Code, OpenCode, Cursor, Magentic-One and
the common servers of files and browsers use them: small letters with underscores, without the server's name before them."""
NAMES = {name: kind for kind, names in KNOWN.items() for name in names.split()}
WORDS: tuple[tuple[frozenset[str], ToolKind], ...] = (
    (set_of("poll wait sleep watch await"), "poll"),
    (set_of("delegate subagent surfer"), "delegate"),
    (
        set_of(
            "view read cat open show stat list ls tree glob find grep rg search lookup query sql fetch get head tail diff "
            "status inspect describe snapshot screenshot"
        ),
        "look",
    ),
)
"""Words of a name that say a kind, the first that fits."""
DOING = set_of(
    "create update delete set add remove insert write send post put save move cancel book submit click type press run "
    "execute edit replace make start stop"
)
"""Words that say the call does something, whatever else the name says."""
CACHED = 4096
"""Names whose kind is remembered."""

_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SERVER = re.compile(r"^(mcp__.+?__|mcp[:_-]|functions\.|[\w-]+[./:])", re.IGNORECASE)


@lru_cache(CACHED)
def kind_of_name(name: str) -> ToolKind:
    """The kind a tool's name says; `other` for a name that says none."""
    words = [word.lower() for word in _WORDS.findall(_SERVER.sub("", name))]
    known = NAMES.get("_".join(words)) or NAMES.get("".join(words))
    if known:
        return known
    for telling, kind in WORDS:
        if telling & set(words):
            return "other" if kind == "look" and DOING & set(words) else kind
    return "other"
