// Calls of tools as one line. Pure. What is shown is exactly what is done: no character of a command may hide or pretend.

const PLAIN = /^[\w@%+=:,./-]+$/;
const UNSEEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}]|(?! )\p{Zs}/gu;
const NAMED = { "\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\", "'": "\\'" };

// Words as a shell would have to be given them; line ends, invisible and direction-changing characters are written out.
export function quoted(argv) {
  return argv.map((word) => quote(String(word))).join(" ");
}

function quote(word) {
  if (PLAIN.test(word)) return word;
  if (word.search(UNSEEN) >= 0) return `$'${word.replace(/['\\]/g, (one) => NAMED[one]).replace(UNSEEN, escaped)}'`;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function escaped(character) {
  return NAMED[character] ?? `\\u{${character.codePointAt(0).toString(16)}}`;
}

// Text of several lines with what cannot be seen written out; line ends and tabs stay.
export function visible(text) {
  return text.replace(UNSEEN, (one) => (one === "\n" || one === "\t" ? one : escaped(one)));
}

// A call: a command as it would be typed, another tool with its arguments.
export function callLine(tool, given) {
  const { argv, ...others } = given ?? {};
  const words = Array.isArray(argv) ? [quoted(argv)] : [tool, ...(argv === undefined ? [] : [assigned("argv", argv)])];
  return [...words, ...Object.entries(others).map(([key, value]) => assigned(key, value))].join(" ");
}

function assigned(key, value) {
  return `${key}=${typeof value === "string" ? quote(value) : visible(JSON.stringify(value))}`;
}
