import type { ErrorOutput } from "../reply";
import type { Host } from "./host";

/** Characters of a traceback that are shown. */
const tracebackChars = 64 << 10;

/** Where a traceback names a line of a cell: "Cell In[2], line 3". */
const place = /Cell In\[(\d+)\], line (\d+)/g;

/** showError shows an error. cellOf tells which cell an execution count was of, if that is known. */
export function showError(error: ErrorOutput, host: Host, cellOf: (count: number) => number | undefined): HTMLElement {
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
    const cell = cellOf(Number(match[1]));
    if (!host.goTo || cell === undefined) continue;
    trace.append(text.slice(end, match.index), lineButton(match[0], cell, Number(match[2]), host.goTo));
    end = match.index + match[0].length;
  }
  trace.append(text.slice(end));
  element.append(title, trace);
  return element;
}

/** lineButton is a text that goes to a line when it is clicked. */
export function lineButton(text: string, cell: number, line: number, goTo: (cell: number, line: number) => void): HTMLButtonElement {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link";
  button.textContent = text;
  button.addEventListener("click", () => goTo(cell, line));
  return button;
}
