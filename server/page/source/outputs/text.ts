// The text of a stream. All of it may be megabytes in a million lines; what is in the page is
// its beginning and its end.

/** Lines and characters that are shown of the beginning, and of the end. */
const headLines = 200;
const headChars = 64 << 10;
const tailLines = 1000;
const tailChars = 192 << 10;

/** Bounded keeps the beginning and the end of a text that grows. */
export class Bounded {
  private head = "";
  private tail = "";
  /** Whole once the head is full: from then on all goes to the tail. */
  private full = false;
  private lost = 0; // lines between head and tail

  append(text: string, replacedLines = 0): void {
    if (replacedLines > 0) this.removeLines(replacedLines);
    if (!this.full) {
      const rest = this.fillHead(text);
      if (!this.full) return;
      text = rest;
    }
    this.tail += text;
    if (this.tail.length > 2 * tailChars) this.trim();
  }

  /** What is to be shown: the beginning, how many lines are left out, and the end. */
  parts(): { head: string; lost: number; tail: string } {
    this.trim();
    return { head: this.head, lost: this.lost, tail: this.tail };
  }

  private fillHead(text: string): string {
    const all = this.head + text;
    let end = 0;
    for (let line = 0; line < headLines && end >= 0; line++) {
      const next = all.indexOf("\n", end);
      if (next < 0) {
        end = -1;
        break;
      }
      end = next + 1;
    }
    const cut = end < 0 ? headChars : Math.min(end, headChars);
    if (end < 0 && all.length <= headChars) {
      this.head = all;
      return "";
    }
    this.full = true;
    this.head = all.slice(0, cut);
    return all.slice(cut);
  }

  private trim(): void {
    let cut = Math.max(0, this.tail.length - tailChars);
    let from = this.tail.length;
    for (let line = 0; line <= tailLines; line++) {
      from = this.tail.lastIndexOf("\n", from - 1);
      if (from <= 0) break;
    }
    if (from > 0) cut = Math.max(cut, from + 1);
    if (cut === 0) return;
    this.lost += count(this.tail, cut);
    this.tail = this.tail.slice(cut);
  }

  private removeLines(lines: number): void {
    if (this.full) this.tail = withoutLines(this.tail, lines);
    else this.head = withoutLines(this.head, lines);
  }
}

/** withoutLines is a text without so many lines at its end, the unfinished one among them. */
export function withoutLines(text: string, lines: number): string {
  for (let i = 1; i < lines; i++) text = text.slice(0, Math.max(0, text.lastIndexOf("\n")));
  return text.slice(0, text.lastIndexOf("\n") + 1);
}

function count(text: string, end: number): number {
  let lines = 0;
  for (let at = text.indexOf("\n"); at >= 0 && at < end; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
}

/** A line that is too long for a browser to lay out is cut. */
const lineChars = 8000;

function cutLines(text: string): string {
  if (text.length <= lineChars) return text;
  return text
    .split("\n")
    .map((line) => (line.length > lineChars ? `${line.slice(0, lineChars)} … (${line.length - lineChars} more characters)` : line))
    .join("\n");
}

/** Pixels from the end within which the end is followed: a part of a line. */
const nearEnd = 8;

/** StreamView shows a stream, and draws at most once a frame. */
export class StreamView {
  readonly element: HTMLElement;
  private readonly head = document.createElement("span");
  private readonly gap = document.createElement("span");
  private readonly tail = document.createElement("span");
  private text = new Bounded();
  private drawing = false;

  constructor(readonly name: string) {
    this.element = document.createElement("pre");
    this.element.className = name === "stderr" ? "stream stderr" : "stream";
    this.element.tabIndex = 0;
    this.element.setAttribute("role", "group");
    this.element.setAttribute("aria-label", name === "stderr" ? "Standard error" : "Output");
    this.gap.className = "gap";
    this.gap.hidden = true;
    this.element.append(this.head, this.gap, this.tail);
  }

  append(text: string, replacedLines = 0): void {
    this.text.append(text, replacedLines);
    this.draw();
  }

  /** Shows this text and nothing else. */
  set(text: string): void {
    this.text = new Bounded();
    this.text.append(text);
    this.draw();
  }

  private draw(): void {
    if (this.drawing) return;
    this.drawing = true;
    requestAnimationFrame(() => {
      this.drawing = false;
      const { scrollTop, clientHeight, scrollHeight } = this.element;
      const follows = scrollTop + clientHeight >= scrollHeight - nearEnd; // who has scrolled up reads
      const { head, lost, tail } = this.text.parts();
      show(this.head, cutLines(head));
      show(this.tail, cutLines(tail));
      this.gap.hidden = lost === 0;
      this.gap.textContent = lost > 0 ? `… ${lost.toLocaleString("en")} lines are not shown …\n` : "";
      if (follows) this.element.scrollTop = this.element.scrollHeight;
    });
  }
}

function show(element: HTMLElement, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}
