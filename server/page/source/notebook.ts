import { Cell, type Kind } from "./cell";
import type { Host } from "./outputs/host";
import type { Language } from "./reply";

export interface CellText {
  kind: Kind;
  text: string;
}

/** What a notebook asks of the page. */
export interface NotebookListener {
  run(cell: Cell): void;
  changed(): void;
}

/** Milliseconds between the two d of "d d". */
const twice = 800;
const maxUndo = 20;

/** Notebook is the list of cells, with Jupyter's keys. */
export class Notebook {
  cells: Cell[] = [];
  private language: Language | undefined;
  private selected = 0;
  private firstD = 0;
  private removed: { at: number; cell: CellText }[] = [];

  constructor(
    private readonly element: HTMLElement,
    private readonly host: Host,
    private readonly listener: NotebookListener,
  ) {
    element.addEventListener("keydown", (event) => this.key(event));
  }

  get code(): Cell[] {
    return this.cells.filter((cell) => cell.kind === "code" && cell.text.trim() !== "");
  }

  get texts(): CellText[] {
    return this.cells.map(({ kind, text }) => ({ kind, text }));
  }

  get current(): Cell | undefined {
    return this.cells[this.selected];
  }

  setLanguage(language: Language | undefined): void {
    this.language = language;
    this.number();
  }

  /** show replaces all cells. */
  show(texts: CellText[]): void {
    for (const cell of this.cells) cell.close();
    this.cells = [];
    this.removed = [];
    for (const { kind, text } of texts.length > 0 ? texts : [{ kind: "code" as const, text: "" }]) this.insert(this.cells.length, kind, text);
    this.select(0);
  }

  insert(at: number, kind: Kind = "code", text = ""): Cell {
    const cell: Cell = new Cell(
      kind,
      text,
      this.host,
      {
        changed: () => this.listener.changed(),
        focused: () => this.select(this.cells.indexOf(cell)),
        selected: () => this.select(this.cells.indexOf(cell)),
        left: () => this.leave(cell),
        run: (then) => this.run(cell, then),
        program: () => this.code.map((c) => c.text).join("\n"),
        beyond: (direction) => this.cells[this.cells.indexOf(cell) + direction]?.edit(direction > 0 ? "start" : "end"),
        removed: () => this.remove(this.cells.indexOf(cell)),
      },
    );
    const next = this.cells[at];
    this.cells.splice(at, 0, cell);
    if (next) next.element.before(cell.element);
    else this.element.append(cell.element);
    this.number();
    this.listener.changed();
    return cell;
  }

  remove(at: number): void {
    const cell = this.cells[at];
    if (!cell) return;
    this.removed.push({ at, cell: { kind: cell.kind, text: cell.text } });
    if (this.removed.length > maxUndo) this.removed.shift();
    cell.close();
    this.cells.splice(at, 1);
    if (this.cells.length === 0) this.insert(0);
    this.number();
    this.select(Math.min(at, this.cells.length - 1));
    this.current?.command();
    this.listener.changed();
  }

  select(at: number): void {
    this.selected = Math.max(0, Math.min(at, this.cells.length - 1));
    this.cells.forEach((cell, i) => cell.select(i === this.selected));
  }

  private run(cell: Cell, then: "stay" | "next" | "insert"): void {
    if (cell.kind === "markdown") cell.render();
    else this.listener.run(cell);
    const at = this.cells.indexOf(cell);
    if (then === "insert" || (then === "next" && at === this.cells.length - 1)) this.insert(at + 1).edit();
    else if (then === "next") {
      this.select(at + 1);
      this.current?.command();
    } else cell.command();
  }

  private leave(cell: Cell): void {
    cell.render();
    cell.command();
  }

  /** numberOf returns the number of a cell with code, from 1; texts have none. */
  numberOf(cell: Cell): number {
    return this.cells.slice(0, this.cells.indexOf(cell) + 1).filter(({ kind }) => kind === "code").length;
  }

  private number(): void {
    this.cells.forEach((cell, i) => cell.place(i, this.numberOf(cell), this.language));
  }

  /** key is for a cell that has the focus and is not edited. */
  private key(event: KeyboardEvent): void {
    const cell = this.current;
    if (!cell || event.target !== cell.element || event.isComposing) return;
    if (event.key === "Enter" && (event.shiftKey || event.ctrlKey || event.metaKey || event.altKey)) {
      this.run(cell, event.shiftKey ? "next" : event.altKey ? "insert" : "stay");
      event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const action = this.action(event.key);
    if (!action) return;
    event.preventDefault();
    action();
  }

  private action(key: string): (() => void) | undefined {
    const at = this.selected;
    const go = (to: number) => () => {
      this.select(to);
      this.current?.command();
    };
    switch (key) {
      case "Enter":
        return () => this.current?.edit();
      case "a":
        return () => this.insertAndSelect(at);
      case "b":
        return () => this.insertAndSelect(at + 1);
      case "j":
      case "ArrowDown":
        return go(at + 1);
      case "k":
      case "ArrowUp":
        return go(at - 1);
      case "z":
        return () => this.undo();
      case "m":
      case "y":
        return () => this.change(at, key === "m" ? "markdown" : "code");
      case "d":
        return () => {
          const now = performance.now();
          if (this.firstD > 0 && now - this.firstD < twice) {
            this.firstD = 0;
            this.remove(at);
          } else this.firstD = now;
        };
      default:
        return undefined;
    }
  }

  private insertAndSelect(at: number): void {
    this.insert(at);
    this.select(at);
    this.current?.command();
  }

  private undo(): void {
    const last = this.removed.pop();
    if (!last) return;
    this.insert(last.at, last.cell.kind, last.cell.text);
    this.select(last.at);
    this.current?.command();
  }

  private change(at: number, kind: Kind): void {
    const cell = this.cells[at];
    if (!cell || cell.kind === kind) return;
    const { text } = cell;
    cell.close();
    this.cells.splice(at, 1);
    this.insert(at, kind, text);
    this.select(at);
    this.current?.command();
  }
}
