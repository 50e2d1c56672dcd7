import { Editor, type EditorListener } from "./editor";
import { OutputArea } from "./outputs/area";
import type { Host } from "./outputs/host";
import { dataOf } from "./outputs/bundle";
import { showMarkdown } from "./outputs/markdown";
import type { Lines } from "./outputs/traceback";
import type { Image, Language, Output } from "./reply";

export type Kind = "code" | "markdown";

/** What a cell tells its notebook. */
export interface CellListener extends EditorListener {
  selected(): void;
  removed(): void;
}

let made = 0;

/** Cell is code with what came out of it, or a text. */
export class Cell {
  readonly element = document.createElement("section");
  readonly outputs: OutputArea;
  /** What the last run left, for what is downloaded. */
  result: Output[] = [];
  /** The images of that run: each run counts its own from image_0.png on. */
  images: Image[] = [];
  private readonly editor: Editor;
  private readonly number = document.createElement("span");
  private readonly outputElement = document.createElement("div");
  private readonly rendered = document.createElement("div");
  private readonly id = `cell-${++made}`;

  constructor(
    readonly kind: Kind,
    text: string,
    private readonly host: Host,
    private readonly listener: CellListener,
  ) {
    this.element.className = `cell ${kind}`;
    this.element.tabIndex = 0;
    this.element.id = this.id;
    this.number.className = "number";
    this.number.setAttribute("aria-hidden", "true");
    this.editor = new Editor(text, listener);
    this.outputElement.className = "outputs";
    this.rendered.className = "rendered";
    this.outputs = new OutputArea(this.outputElement, { ...host, picture: (link, mediaType) => host.picture(link, mediaType) ?? dataOf(link, mediaType, this.images) });

    const box = document.createElement("div");
    box.className = "box";
    box.append(this.rendered, this.editor.element, this.removeButton());
    const column = document.createElement("div");
    column.className = "column";
    column.append(box, this.outputElement);
    this.element.append(this.number, column);
    this.element.addEventListener("focusin", () => listener.selected());
    this.rendered.addEventListener("dblclick", () => this.edit());
    if (kind === "markdown" && text) this.render();
  }

  get text(): string {
    return this.editor.text;
  }

  set text(text: string) {
    this.editor.text = text;
  }

  /** Tells the cell its place among all, its number among those with code, and its language. */
  place(index: number, number: number, language: Language | undefined): void {
    const isCode = this.kind === "code";
    const name = isCode ? `Cell ${number}` : `Text at place ${index + 1}`;
    this.number.textContent = isCode ? String(number) : "";
    this.element.setAttribute("aria-label", name);
    this.editor.setLanguage(language, this.kind);
    this.editor.setLabel(
      isCode ? `Code of cell ${number}, ${language?.display_name ?? "no language"}` : `${name}, Markdown`,
      isCode ? "Type code. Shift-Enter runs it." : "Type Markdown. Shift-Enter shows it.",
    );
  }

  select(selected: boolean): void {
    this.element.classList.toggle("selected", selected);
  }

  /** The keys of cells, as after Escape. */
  command(): void {
    this.element.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  edit(where?: "start" | "end"): void {
    this.element.classList.remove("shown");
    if (where) this.editor.focusAt(where);
    else this.editor.focus();
  }

  /** Shows what the Markdown of a text says. */
  render(): void {
    if (this.kind !== "markdown") return;
    this.element.classList.add("shown");
    this.rendered.replaceChildren(showMarkdown(this.text || "*Empty text*", this.host));
  }

  begin(): void {
    this.outputs.clear();
    this.result = [];
    this.images = [];
    this.editor.markError(0);
  }

  running(running: boolean): void {
    this.element.classList.toggle("running", running);
    this.element.setAttribute("aria-busy", String(running));
  }

  settle(outputs: Output[], images: Image[], lines: Lines): void {
    this.result = outputs;
    this.images = images;
    this.outputs.settle(outputs, lines);
  }

  markError(line: number): void {
    this.editor.markError(line);
  }

  goTo(line: number): void {
    if (!this.element.isConnected) return; // it was deleted
    this.element.classList.remove("shown");
    this.editor.goTo(line);
  }

  close(): void {
    this.editor.close();
    this.element.remove();
  }

  private removeButton(): HTMLElement {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "remove";
    button.title = "Delete this cell (Esc, then d d)";
    button.setAttribute("aria-label", "Delete this cell");
    button.textContent = "×";
    button.addEventListener("click", () => this.listener.removed());
    return button;
  }
}
