import type { Cell } from "./cell";
import { byId, type Controls } from "./controls";
import { bytes } from "./figures";
import { remember } from "./history";
import type { Inputs } from "./inputs";
import { showMade } from "./made";
import type { Notebook } from "./notebook";
import type { MadeFile, Reply } from "./reply";
import type { Wish } from "./request";
import { type Ending, Run } from "./run";
import { Problem, type Service } from "./service";
import type { SessionKeeper } from "./session";
import { ended, hint, says } from "./statusline";

/** Runs has cells run, one run after another, and knows what the last one left. */
export class Runs {
  /** Of the last run, if it has ended with one. */
  reply: Reply | undefined;
  private run: Run | undefined;
  private ran: Cell[] = []; // the cells of the last run
  private end: Promise<unknown> = Promise.resolve();
  private made: MadeFile[] = [];

  constructor(
    private readonly service: Service,
    private readonly controls: Controls,
    private readonly notebook: Notebook,
    private readonly inputs: Inputs,
    private readonly session: SessionKeeper,
  ) {}

  /** Whether a run goes on. */
  get running(): boolean {
    return this.run !== undefined;
  }

  stop(): void {
    this.run?.stop();
  }

  /** forget is for other cells than those that ran. */
  forget(): void {
    this.reply = undefined;
    this.ran = [];
    hint("");
    this.showMade([], []);
  }

  wish(cells: Cell[]): Wish {
    return { cells: cells.map((cell) => cell.text), language: this.controls.language?.language ?? "", ...this.controls.wishes };
  }

  /** start runs cells, if there are any and nothing runs. */
  start(cells: Cell[]): void {
    if (this.run) return says("A run goes on. Stop it first.");
    cells = cells.filter((cell) => cell.text.trim() !== "");
    if (cells.length === 0 || !this.controls.language) return says("There is no code to run.");
    if (this.inputs.files.reduce((sum, file) => sum + file.size, 0) > this.controls.maxUpload) {
      return says(`The files are larger than ${bytes(this.controls.maxUpload)}, which is what one run may have.`, "error");
    }
    this.end = this.perform(cells);
  }

  private async perform(cells: Cell[]): Promise<void> {
    const run = new Run(this.service, cells, {
      says: (text) => says(text, "running"),
      file: (file) => this.showMade([...this.made.filter((f) => f.path !== file.path), file], []),
    });
    this.run = run;
    this.forget();
    this.ran = cells;
    this.showRunning(true);
    const began = performance.now();
    const wish = this.wish(cells);
    let ending: Ending;
    try {
      if (this.controls.session) {
        says("Opening a session …", "running");
        wish.session = await this.session.ensure(wish, run.signal);
      }
      ending = await run.start(wish, this.inputs.files);
    } catch (error) {
      ending = run.signal.aborted ? { stopped: true } : { problem: error as Problem };
    }
    this.run = undefined;
    this.showRunning(false);
    this.settle(ending, performance.now() - began);
  }

  private settle(ending: Ending, ms: number): void {
    let status = "stopped";
    if ("reply" in ending) {
      const { reply } = ending;
      this.reply = reply;
      status = reply.status;
      this.showMade(reply.files, reply.skipped);
      hint(this.named(reply));
      says(ended(reply), reply.status === "ok" ? "ok" : "error");
      if (this.controls.session && this.inputs.files.length > 0) this.inputs.clear(); // the session has them
    } else if ("stopped" in ending) says("Stopped.", "error");
    else {
      const { problem } = ending;
      status = "failed";
      if (this.controls.session && (problem.status === 404 || problem.status === 410)) this.session.forget();
      says(problem.message, "error");
    }
    byId("forget-key").hidden = !this.service.hasKey;
    remember({ when: Date.now(), language: this.controls.language?.language ?? "", cells: this.notebook.texts, status, ms, ...(this.reply && { id: this.reply.id }) });
  }

  private showRunning(running: boolean): void {
    byId("stop").hidden = !running;
    byId<HTMLButtonElement>("run").disabled = running;
    document.body.classList.toggle("busy", running);
  }

  private showMade(files: MadeFile[], skipped: Reply["skipped"]): void {
    this.made = files;
    showMade(byId("made"), files, skipped, (url) => this.service.local(url));
  }

  /** failed is the error of the last run, with its cell among these. */
  failed(among: Cell[]): Reply["error"] {
    const error = this.reply?.error;
    const cell = error && this.ran[error.cell];
    return cell ? { ...error, cell: among.indexOf(cell) } : null;
  }

  /** widgets returns the state of the widgets, which the notebook of a run that has ended holds. */
  async widgets(): Promise<unknown> {
    await new Promise((resolve) => setTimeout(resolve)); // the run may be about to be set
    await this.end;
    const address = this.reply?.notebook && this.service.local(this.reply.notebook.url);
    if (!address) return undefined;
    const answer = await fetch(address, { credentials: "omit" }).catch(() => undefined);
    if (!answer?.ok) return undefined;
    const book = (await answer.json()) as { metadata?: { widgets?: Record<string, unknown> } };
    return book.metadata?.widgets?.["application/vnd.jupyter.widget-state+json"];
  }

  /** named is a hint with the cell by the number that it has here. */
  private named({ hint, error }: Reply): string {
    const cell = error && this.ran[error.cell];
    return cell ? hint.replace(` cell ${error.cell}:`, ` cell ${this.notebook.numberOf(cell)}:`) : hint;
  }
}
