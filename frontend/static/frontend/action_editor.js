// Changing a call before it is approved: a command word by word, line by line; other arguments as JSON.

import { element, setText } from "./dom.js";

const MAX_ROWS = 16; // lines of the box before it scrolls

export class ActionEditor {
  #byLine;

  constructor(action) {
    this.given = action.arguments ?? {};
    this.#byLine = isPlainCommand(this.given);
    const text = this.#byLine ? this.given.argv.join("\n") : JSON.stringify(this.given, null, 2);
    const rows = Math.min(MAX_ROWS, text.split("\n").length + 1);
    this.box = element("textarea", { rows, spellcheck: "false", autocapitalize: "off", wrap: "off" }, text);
    this.problem = element("p", { class: "alarm", role: "alert", hidden: true });
    const label = this.#byLine ? "The command: each line is one word, spaces belong to it" : "The arguments, as JSON";
    this.node = element("div", { class: "changes", hidden: true }, element("label", {}, label, this.box), this.problem);
    this.box.addEventListener("input", () => this.#tell(""));
  }

  // The changed arguments; null, with the reason shown, where they make none; undefined where nothing was changed.
  read() {
    try {
      const found = this.#byLine ? { argv: argvOf(this.box.value) } : objectOf(this.box.value);
      return JSON.stringify(found) === JSON.stringify(this.given) ? undefined : found;
    } catch (error) {
      this.#tell(error.message);
      this.box.focus();
      return null;
    }
  }

  #tell(text) {
    setText(this.problem, text);
    this.problem.hidden = !text;
    this.box.toggleAttribute("aria-invalid", Boolean(text));
  }
}

function isPlainCommand(given) {
  const { argv, ...others } = given;
  const words = Array.isArray(argv) && argv.every((word) => typeof word === "string" && word && !/[\r\n]/.test(word));
  return words && Object.keys(others).length === 0;
}

function argvOf(text) {
  const argv = text.split("\n").filter((word) => word !== "");
  if (!argv.length) throw new Error("A command has at least one word.");
  return argv;
}

function objectOf(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${error.message}`);
  }
  if (typeof found !== "object" || found === null || Array.isArray(found)) throw new Error("Arguments are an object: {\"name\": value}.");
  return found;
}
