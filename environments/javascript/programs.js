// Runs a program of files as a process of its own, which ends when nothing is left to do.

import { existsSync } from "node:fs";

const { setTimeout, clearTimeout } = globalThis; // whatever cells do to them
const PACKAGES = "/opt/dependencies/node_modules";
const HELD_MS = 1000; // for Deno to end after its last words, and for these to be read
const MAX_HELD = 1 << 16; // bytes of them; more is something else
const LAST_WORDS = /^error: (?:Uncaught |Module not found |[^]*\n {4}at )/;

// run returns when the program has ended well; else it throws what Deno has said of its
// error, or CommandFailed with its exit code. output is the path of the pipe for program.js.
export async function run(path, output) {
  const options = ["-A", "--no-lock", "--preload", `${import.meta.dirname}/program.js`];
  // If there are packages, they are what npm: means, whatever settings the program has.
  if (existsSync(PACKAGES)) options.push("--node-modules-dir=manual");
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", ...options, path],
    env: { NOTEBOX_OUTPUT: output },
    stdin: "null",
    stdout: "inherit",
    stderr: "piped",
  }).spawn();
  const words = new Words();
  const said = words.read(child.stderr);
  const { code, signal } = await child.status;
  // Who inherited it may live on.
  await Promise.race([said, new Promise((done) => setTimeout(done, HELD_MS).unref())]);
  const error = code === 1 && !signal && uncaught(words.held);
  if (error) words.held = "";
  words.release();
  if (error) throw error;
  if (signal) throw failure("CommandFailed", `the program was killed by ${signal}, exit code ${code}`);
  if (code) throw failure("CommandFailed", `the program ended with exit code ${code}`);
}

let stderr; // not console's

// Words is what comes from stderr beside the console's: it goes on at once, but for what may
// be Deno's last words of an error.
class Words {
  held = "";
  #decoder = new TextDecoder();
  #encoder = new TextEncoder();
  #atLineStart = true;
  #timer;

  async read(stream) {
    for await (const bytes of stream) this.#take(this.#decoder.decode(bytes, { stream: true }));
    this.#take(this.#decoder.decode());
  }

  #take(text) {
    const start = this.held ? 0 : this.#find(text);
    this.#write(text.slice(0, start));
    this.held += text.slice(start);
    if (this.held.length > MAX_HELD) this.release();
    else if (this.held) this.#timer ??= setTimeout(() => this.release(), HELD_MS).unref();
  }

  #find(text) {
    if (this.#atLineStart && text.startsWith("error: ")) return 0;
    const at = text.indexOf("\nerror: ");
    return at < 0 ? text.length : at + 1;
  }

  release() {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const text = this.held;
    this.held = "";
    this.#write(text);
  }

  #write(text) {
    if (!text) return;
    this.#atLineStart = text.endsWith("\n");
    const bytes = this.#encoder.encode(text);
    stderr ??= Deno.openSync("/proc/self/fd/2", { write: true });
    for (let at = 0; at < bytes.length;) at += stderr.writeSync(bytes.subarray(at));
  }
}

// uncaught returns the error that Deno's last words are of, undefined if they are none:
// "error: Uncaught (in promise) NAME: MESSAGE", the line of the program, the frames.
export function uncaught(words) {
  if (!LAST_WORDS.test(words)) return;
  const lines = words.trimEnd().split("\n");
  const [, thrown, first] = /^error: (Uncaught (?:\(in promise\) )?)?(.*)$/.exec(lines[0]);
  let [, name, message] = /^([A-Za-z_$][\w$]*): (.*)$/.exec(first) ?? [null, "Error", first];
  if (thrown && /^[A-Za-z_$][\w$]*$/.test(first)) [name, message] = [first, ""];
  let end = lines.findIndex((line, i) => i > 0 && /^ {4}at |^ +\|$|^ {2}hint: /.test(line));
  if (end < 0) end = lines.length;
  if (end > 2 && /^ *[\^~]+$/.test(lines[end - 1])) end -= 2;
  message = [message, ...lines.slice(1, end)].join("\n");
  return failure(name, message, [first, ...lines.slice(1)].join("\n"));
}

function failure(name, message, stack = `${name}: ${message}`) {
  const error = new Error(message);
  Object.defineProperties(error, { name: { value: name }, stack: { value: stack } });
  return error;
}
