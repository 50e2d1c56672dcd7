import type { DisplayOutput, Output } from "../reply";
import { showBundle } from "./bundle";
import type { Host } from "./host";
import { StreamView } from "./text";
import { showError } from "./traceback";

/** Outputs of one cell that are in the page at most. */
const maxOutputs = 300;

interface Entry {
  output: Output;
  element: HTMLElement;
  stream?: StreamView;
}

/** OutputArea shows what one cell put out, while it comes and when the run has ended. */
export class OutputArea {
  private entries: Entry[] = [];
  private readonly more = document.createElement("p");

  constructor(
    readonly element: HTMLElement,
    private readonly host: Host,
    private readonly cellOf: (count: number) => number | undefined = () => undefined,
  ) {
    this.more.className = "gap";
  }

  /** add shows an event's output: text of a stream goes to the entry before, if that is of the same stream. */
  add(output: Output): void {
    if (output.type === "stream") {
      const last = this.entries.at(-1);
      if (last?.stream && last.output.type === "stream" && last.output.name === output.name) {
        last.stream.append(output.text, output.replaced_lines);
        return;
      }
    }
    this.append(output);
  }

  /** update gives all displays of an id other data. */
  update(id: string, output: DisplayOutput): void {
    this.entries.forEach((entry, i) => {
      if (entry.output.type === "display" && entry.output.display_id === id) this.replace(i, { ...entry.output, data: output.data });
    });
  }

  clear(): void {
    this.entries = [];
    this.element.replaceChildren();
  }

  /** settle shows these outputs, and leaves what is there already as it is. */
  settle(outputs: Output[]): void {
    outputs.slice(0, maxOutputs).forEach((output, i) => {
      const entry = this.entries[i];
      if (!entry) this.append(output);
      else if (entry.stream && output.type === "stream" && entry.stream.name === output.name) entry.stream.set(output.text);
      else if (!sameOutput(entry.output, output) || entry.element.dataset["waits"]) this.replace(i, output);
    });
    for (const entry of this.entries.splice(Math.min(outputs.length, maxOutputs))) entry.element.remove();
    this.tellMore(outputs.length - this.entries.length);
  }

  private append(output: Output): void {
    if (this.entries.length >= maxOutputs) {
      this.tellMore(1 + Number(this.more.dataset["count"] ?? 0));
      return;
    }
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

  private tellMore(count: number): void {
    this.more.dataset["count"] = String(count);
    this.more.textContent = `… ${count.toLocaleString("en")} more outputs are not shown; the notebook has them …`;
    if (count > 0) this.element.append(this.more);
    else this.more.remove();
  }

  private show(output: Output): Entry {
    switch (output.type) {
      case "stream": {
        const stream = new StreamView(output.name);
        stream.set(output.text);
        return { output: { ...output, text: "" }, element: stream.element, stream };
      }
      case "error":
        return { output, element: showError(output, this.host, this.cellOf) };
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
