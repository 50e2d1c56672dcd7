import type { DisplayOutput, Output, StreamOutput } from "../reply";
import { makeButton } from "../dialog";
import { showBundle } from "./bundle";
import type { Host } from "./host";
import { StreamView, withoutLines } from "./text";
import { type Lines, showError } from "./traceback";

/** Outputs of one cell that are in the page, until a person wants as many more: a browser lays out each. */
const someOutputs = 300;

interface Entry {
  output: Output;
  element: HTMLElement;
  stream?: StreamView;
}

/** OutputArea shows what one cell put out, while it comes and when the run has ended. */
export class OutputArea {
  private entries: Entry[] = [];
  private all: Output[] = []; // once the run has ended
  private rest: Output[] = []; // that are hidden, while the run goes on
  private lines: Lines | undefined; // once the run has ended
  private limit = someOutputs;
  private hidden = 0;
  /** Says how many are not shown, and shows more. The errors of those come after it. */
  private readonly more = document.createElement("p");
  private failures: HTMLElement[] = [];

  constructor(
    readonly element: HTMLElement,
    private readonly host: Host,
  ) {
    this.more.className = "gap";
  }

  /** add shows an event's output: text of a stream goes to the entry before, if that is of the same stream. */
  add(output: Output): void {
    if (output.type === "stream" && this.continues(output)) return;
    if (this.entries.length >= this.limit) this.rest.push({ ...output });
    this.append(output);
  }

  private continues(output: StreamOutput): boolean {
    const hidden = this.rest.at(-1);
    const last = this.entries.at(-1);
    if (hidden) {
      if (hidden.type !== "stream" || hidden.name !== output.name) return false;
      const { text, replaced_lines = 0 } = output;
      hidden.text = (replaced_lines > 0 ? withoutLines(hidden.text, replaced_lines) : hidden.text) + text;
      return true;
    }
    if (last?.stream?.name !== output.name) return false;
    last.stream.append(output.text, output.replaced_lines);
    return true;
  }

  /** update gives all displays of an id other data. */
  update(id: string, output: DisplayOutput): void {
    for (const hidden of this.rest) {
      if (hidden.type === "display" && hidden.display_id === id) hidden.data = output.data;
    }
    this.entries.forEach((entry, i) => {
      if (entry.output.type === "display" && entry.output.display_id === id) this.replace(i, { ...entry.output, data: output.data });
    });
  }

  clear(): void {
    this.entries = [];
    this.all = [];
    this.rest = [];
    this.lines = undefined;
    this.limit = someOutputs;
    this.hidden = 0;
    this.failures = [];
    this.element.replaceChildren();
  }

  /** finish is for a run that ends without a reply: what it put out is all there is. */
  finish(): void {
    this.settle([...this.entries.map(({ output }) => output), ...this.rest], () => undefined);
  }

  /** settle shows these outputs, and leaves what is there already as it is. */
  settle(outputs: Output[], lines: Lines): void {
    this.all = outputs;
    this.rest = [];
    this.lines = lines;
    this.hidden = 0;
    for (const element of [this.more, ...this.failures.splice(0)]) element.remove();
    outputs.slice(0, this.limit).forEach((output, i) => {
      const entry = this.entries[i];
      if (!entry) this.append(output);
      else if (entry.stream && entry.output === output) return;
      else if (entry.stream && output.type === "stream" && entry.stream.name === output.name) entry.stream.set(output.text);
      else if (!sameOutput(entry.output, output) || entry.element.dataset["waits"]) this.replace(i, output);
    });
    for (const entry of this.entries.splice(Math.min(outputs.length, this.limit))) entry.element.remove();
    for (const output of outputs.slice(this.entries.length)) this.hide(output);
    if (this.hidden > 0) this.more.append(" ", makeButton("Show more", () => this.showMore(), "link"));
  }

  private append(output: Output): void {
    if (this.entries.length >= this.limit) return this.hide(output);
    const entry = this.show(output);
    this.entries.push(entry);
    this.element.append(entry.element);
  }

  private replace(i: number, output: Output): void {
    const old = this.entries[i];
    const entry = this.show(output);
    this.entries[i] = entry;
    old?.element.replaceWith(entry.element);
  }

  /** hide counts an output that is not shown. Why a run failed is shown all the same. */
  private hide(output: Output): void {
    if (output.type === "error") {
      const { element } = this.show(output);
      this.failures.push(element);
      this.element.append(element);
      return;
    }
    this.hidden++;
    this.more.textContent = this.hidden === 1 ? "… 1 more output" : `… ${this.hidden.toLocaleString("en")} more outputs`;
    if (!this.more.isConnected) {
      if (this.failures[0]) this.failures[0].before(this.more);
      else this.element.append(this.more);
    }
  }

  private showMore(): void {
    const next = this.entries.length;
    this.limit += someOutputs;
    this.settle(this.all, this.lines ?? (() => undefined));
    const first = this.entries[next]?.element;
    if (!first) return;
    if (first.tabIndex < 0) first.tabIndex = -1; // the focus may go there
    first.focus();
  }

  private show(output: Output): Entry {
    switch (output.type) {
      case "stream": {
        const stream = new StreamView(output.name);
        stream.set(output.text);
        return { output: { ...output, text: "" }, element: stream.element, stream };
      }
      case "error":
        return { output, element: showError(output, this.lines) };
      default:
        return { output, element: showBundle(output.data, this.host) };
    }
  }
}

function sameOutput(a: Output, b: Output): boolean {
  if (a.type === "error" || b.type === "error") return same(a, b);
  if (a.type === "stream" || b.type === "stream") return false;
  return same(a.data, b.data);
}

/** same compares JSON, whatever the order of an object's members. */
export function same(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const keys = Object.keys(a);
  return (
    keys.length === Object.keys(b).length &&
    keys.every((key) => Object.hasOwn(b, key) && same((a as Record<string, unknown>)[key], (b as Record<string, unknown>)[key]))
  );
}
