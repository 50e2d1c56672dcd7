import { makeButton } from "../dialog";
import type { ErrorOutput, Exception } from "../reply";

/** Characters of a traceback that are shown. */
const tracebackChars = 64 << 10;

/** Where a traceback names a line of a cell: "Cell In[2], line 3". */
const place = /Cell In\[(\d+)\], line (\d+)/g;

/** Lines tells how to go to a line that a traceback names, by its cell's execution count; undefined: there is no way. */
export type Lines = (traceback: string, count: number, line: number) => (() => void) | undefined;

/** linesOf is of a run that has ended with this error. code are the cells that ran, of which goTo shows a line. */
export function linesOf(error: Exception | null, code: string[], goTo: (cell: number, line: number) => void): Lines {
  if (!error || error.line === 0 || code[error.cell] === undefined) return () => undefined;
  // Of the cells that a traceback names, the one that failed has the highest count: it ran last.
  let own = 0;
  for (const [, count, line] of error.traceback.matchAll(place)) {
    if (Number(line) + linesBefore(error.traceback, code[error.cell]) === error.line) own = Math.max(own, Number(count));
  }
  return (traceback, count, line) => {
    // Where the counts do not begin with this run, others are of cells that nobody knows here.
    const cell = own === error.cell + 1 ? count - 1 : count === own ? error.cell : -1;
    const text = code[cell];
    return text === undefined ? undefined : () => goTo(cell, line + linesBefore(traceback, text));
  };
}

/** linesBefore counts the blank lines that IPython takes off a cell before it counts. What begins with a frame is another kernel's. */
function linesBefore(traceback: string, code = ""): number {
  if (traceback.startsWith("Cell In[")) return 0;
  return code.slice(0, code.search(/\S|$/)).split("\n").length - 1;
}

/** showError shows an error. lines are undefined as long as the run goes on. */
export function showError(error: ErrorOutput, lines: Lines | undefined): HTMLElement {
  const element = document.createElement("div");
  element.className = "error";
  const title = document.createElement("p");
  title.className = "error-title";
  const name = document.createElement("strong");
  name.textContent = error.name.slice(0, 200);
  title.append(name);
  if (error.message) title.append(": " + error.message.slice(0, 2000));
  const trace = document.createElement("pre");
  trace.className = "traceback";
  trace.tabIndex = 0;
  trace.setAttribute("role", "group");
  trace.setAttribute("aria-label", "Traceback");
  let text = error.traceback;
  if (text.length > tracebackChars) text = `${text.slice(0, tracebackChars / 2)}\n…\n${text.slice(-tracebackChars / 2)}`;
  let end = 0;
  for (const match of text.matchAll(place)) {
    if (!lines) element.dataset["waits"] = "lines"; // it is shown again when the run has ended
    const go = lines?.(error.traceback, Number(match[1]), Number(match[2]));
    if (!go) continue;
    trace.append(text.slice(end, match.index), makeButton(match[0], go, "link"));
    end = match.index + match[0].length;
  }
  trace.append(text.slice(end));
  element.append(title, trace);
  return element;
}
