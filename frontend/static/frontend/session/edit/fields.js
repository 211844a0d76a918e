// Fields of a form from a JSON schema: how a value reads as text, and text as a value. Pure.

import { PRIORITIES } from "../../states.js";

// What a task row calls otherwise than an operation does.
const ROW_KEYS = { device: "wanted_device" };

// "choice", "flag", "number", "text", "lines" (a list, one a line), "line or lines" or "json".
export function kindOf(schema) {
  const types = [schema.type].flat().filter((type) => type !== "null");
  if (schema.enum) return "choice";
  if (types.includes("boolean")) return "flag";
  if (types.includes("number") || types.includes("integer")) return "number";
  if (types.includes("array") && types.includes("string")) return "line or lines";
  if (types.includes("array")) return schema.items?.type === "string" ? "lines" : "json";
  return types.includes("object") ? "json" : "text";
}

// The present value of a key, as its field shows it.
export function textOfTask(task, key, schema) {
  if (key === "command") return task.tool === "command" ? commandText(task.arguments ?? {}) : "";
  if (key === "shell") return task.tool === "command" && task.arguments?.shell ? "true" : "false";
  if (key === "tool" || key === "arguments") return task.tool === "command" ? "" : textOf(task[key], schema);
  if (key === "priority") return PRIORITIES[task.priority] ?? "";
  return textOf(task[ROW_KEYS[key] ?? key], schema);
}

export function textOf(value, schema) {
  if (value === null || value === undefined) return "";
  const kind = kindOf(schema);
  if (kind === "json") return Object.keys(value).length ? JSON.stringify(value, null, 2) : "";
  if (Array.isArray(value)) return value.some((word) => /[\r\n]/.test(word)) ? JSON.stringify(value) : value.join("\n");
  return String(value);
}

function commandText({ argv, command }) {
  return argv ? textOf(argv, { type: "array", items: { type: "string" } }) : (command ?? "");
}

// The value of a field; undefined where it says nothing, null where a present value is to go. Raises Error with what is wrong.
export function valueOf(text, schema, before = "") {
  const kind = kindOf(schema);
  const said = kind === "json" ? text.trim() : text;
  if (said === "") return before === "" ? undefined : null;
  if (kind === "flag") return said === "true";
  if (kind === "number") {
    const number = Number(said);
    if (Number.isNaN(number)) throw new Error("must be a number");
    return number;
  }
  if (kind === "json" || (kind.endsWith("lines") && said.trimStart().startsWith("["))) return jsonOf(said);
  const lines = said.split("\n").filter((line) => line !== "");
  if (kind === "lines") return lines;
  return kind === "line or lines" && lines.length > 1 ? lines : said.trim();
}

function jsonOf(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`is not JSON: ${error.message}`);
  }
}
