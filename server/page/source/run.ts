import type { Cell } from "./cell";
import { linesOf } from "./outputs/traceback";
import { body, type Wish } from "./request";
import type { DisplayOutput, MadeFile, Output, Reply } from "./reply";
import { Problem, type Service } from "./service";

/** What a run tells the page. */
export interface RunListener {
  says(text: string): void;
  file(file: MadeFile): void;
}

/** How a run ended: with a reply, or without one. */
export type Ending = { reply: Reply } | { problem: Problem } | { stopped: true };

/** Milliseconds that a cancelled run has to tell what it did, before the page hangs up. */
const patience = 4000;

/** Run is one request with its cells. */
export class Run {
  private readonly abort = new AbortController();
  private id = "";
  private stopping = false;

  constructor(
    private readonly service: Service,
    readonly cells: Cell[],
    private readonly listener: RunListener,
  ) {}

  get signal(): AbortSignal {
    return this.abort.signal;
  }

  /** stop cancels the run; its reply says what there was until then. */
  stop(): void {
    if (this.stopping || !this.id) {
      this.abort.abort();
      return;
    }
    this.stopping = true;
    this.listener.says("Stopping …");
    setTimeout(() => this.abort.abort(), patience);
    this.service.cancel(this.id).catch(() => this.abort.abort());
  }

  async start(wish: Wish, files: File[]): Promise<Ending> {
    for (const cell of this.cells) {
      cell.begin();
      cell.running(true);
    }
    this.listener.says("Waiting for a sandbox …");
    const ending = await this.follow(wish, files);
    for (const cell of this.cells) {
      cell.running(false);
      if (!("reply" in ending)) cell.outputs.finish();
    }
    return ending;
  }

  private async follow(wish: Wish, files: File[]): Promise<Ending> {
    try {
      for await (const { name, data } of this.service.execute(body(wish, files), this.abort.signal)) {
        if (name === "done") return { reply: this.settle(data as Reply, wish.cells) };
        if (name === "error") {
          return { problem: new Problem((data as { detail?: string }).detail ?? "The service failed.") };
        }
        this.event(name, data);
      }
      return { problem: new Problem("The connection ended before the run did.") };
    } catch (error) {
      if (this.abort.signal.aborted) return { stopped: true };
      return { problem: error as Problem };
    } finally {
      this.abort.abort(); // nothing more is read
    }
  }

  private event(name: string, data: unknown): void {
    switch (name) {
      case "started":
        this.id = (data as { id: string }).id;
        this.listener.says("Running …");
        break;
      case "install":
        this.listener.says(`Installing packages … ${(data as { text: string }).text.trim().split("\n").at(-1)?.slice(0, 120) ?? ""}`);
        break;
      case "output":
        this.output(data as Output);
        break;
      case "clear":
        this.cells[(data as { cell: number }).cell]?.outputs.clear();
        break;
      case "file":
        this.listener.file(data as MadeFile);
        break;
    }
  }

  private output(output: Output): void {
    if (output.type !== "stream" && output.type !== "error" && output.update && output.display_id) {
      for (const cell of this.cells) cell.outputs.update(output.display_id, output as DisplayOutput);
      return;
    }
    this.cells[output.cell]?.outputs.add(output);
  }

  private settle(reply: Reply, code: string[]): Reply {
    const lines = linesOf(reply.error, code, (cell, line) => this.cells[cell]?.goTo(line));
    this.cells.forEach((cell, i) => cell.settle(reply.outputs.filter((output) => output.cell === i), reply.images, lines));
    if (reply.error && reply.error.line > 0) this.cells[reply.error.cell]?.markError(reply.error.line);
    return reply;
  }
}
