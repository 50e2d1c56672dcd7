import type { Cell } from "./cell";
import { byId, Controls } from "./controls";
import { askKey } from "./dialog";
import { saveAs, writeRecord } from "./download";
import { first } from "./examples";
import { bytes, seconds } from "./figures";
import { remember } from "./history";
import { Inputs, onDrop } from "./inputs";
import { readNotebook, writeNotebook } from "./ipynb";
import { showMade } from "./made";
import { Notebook, type CellText } from "./notebook";
import type { Host } from "./outputs/host";
import type { MadeFile, Reply } from "./reply";
import type { Wish } from "./request";
import { type Ending, Run, SessionKeeper } from "./run";
import { Problem, Service } from "./service";
import { readShared, sharedRun, showShare } from "./share";
import { snippets } from "./snippets";
import { showDownloads, showExamples, showHistory, showKeys, showSnippets } from "./panels";
import { startTheme } from "./theme";

const draftName = "notebox.draft";

/** Milliseconds after the last change until the draft is kept. */
const draftPause = 400;

/** App is the page: it wires its parts. */
export class App {
  private readonly service = new Service(askKey);
  private readonly controls: Controls;
  private readonly notebook: Notebook;
  private readonly inputs: Inputs;
  private readonly session = new SessionKeeper(this.service, () => this.showSession());
  private run: Run | undefined;
  private ran: Cell[] = []; // the cells of the last run
  private reply: Reply | undefined;
  private ended: Promise<unknown> = Promise.resolve();
  private made: MadeFile[] = [];
  private images: Reply["images"] = [];
  private draftTimer = 0;

  constructor() {
    startTheme(byId<HTMLButtonElement>("theme-button"));
    this.notebook = new Notebook(byId("cells"), this.host(), (count) => this.cellOf(count), {
      run: (cell) => this.start(this.controls.session ? [cell] : this.notebook.code),
      changed: () => this.keepDraft(),
    });
    this.controls = new Controls(() => this.languageChanged());
    this.inputs = new Inputs(byId("inputs"), () => undefined);
    this.buttons();
    onDrop(byId("drop"), (files) => void this.take(files));
  }

  /** open asks the service what it offers, and shows what was here before or an example. */
  async open(): Promise<void> {
    this.notebook.show([]);
    try {
      this.controls.fill(await this.service.environments());
    } catch (error) {
      this.says(error instanceof Problem ? error.message : String(error), "error");
      return;
    }
    byId("forget-key").hidden = !this.service.hasKey;
    const draft = readDraft();
    if (draft && this.controls.find(draft.language)) this.controls.choose(draft.language);
    this.notebook.show(draft?.cells ?? first(this.controls.language?.language ?? ""));
    byId<HTMLButtonElement>("run").disabled = !this.controls.language;
    if (!this.controls.language) this.says("No language is installed. An operator builds their images.", "error");
    if (this.notebook.current?.kind === "code") this.notebook.current.edit("end");
    await this.openShared();
    addEventListener("hashchange", () => void this.openShared());
  }

  /** openShared shows the code of a run that somebody shares, if the address names one. */
  private async openShared(): Promise<void> {
    const address = sharedRun();
    if (!address) return;
    history.replaceState(null, "", location.pathname + location.search); // it is opened once
    try {
      const { cells, language } = await readShared(this.service, address);
      const known = this.controls.find(language);
      if (known) this.controls.choose(known.language);
      this.show(cells);
      this.says(known ? "This is the code of a run that was shared with you. Run it with a key of your own." : `The run is in ${language}, which this service does not have.`, known ? "" : "error");
    } catch (error) {
      this.says(`The run could not be opened: ${error instanceof Problem ? error.message : String(error)}`, "error");
    }
  }

  private host(): Host {
    return {
      picture: (link, mediaType) => {
        const local = this.service.local(link.url);
        if (local) return local;
        const data = this.images.find((image) => image.name === link.name)?.data;
        return data ? `data:${mediaType};base64,${data}` : undefined;
      },
      download: (link) => this.service.local(link.url) ?? (/^https?:/.test(link.url) ? link.url : undefined),
      startFrame: (frame) => {
        frame.loading = "lazy"; // what nobody scrolls to takes no memory
        frame.src = "page/frame";
      },
      script: asset,
      widgets: () => this.widgets(),
      goTo: (cell, line) => this.ran[cell]?.goTo(line),
      mathml: false,
    };
  }

  private buttons(): void {
    const on = (id: string, act: () => void) => byId(id).addEventListener("click", act);
    on("run", () => this.start(this.notebook.code));
    on("stop", () => this.run?.stop());
    on("add-code", () => this.notebook.insert(this.notebook.cells.length).edit());
    on("add-text", () => this.notebook.insert(this.notebook.cells.length, "markdown").edit());
    on("files-button", () => byId("file-input").click());
    on("open-button", () => byId("open-input").click());
    on("keys-button", showKeys);
    on("examples-button", () =>
      showExamples(this.controls.languages, (language, example) => {
        this.controls.choose(language);
        this.show(example.cells);
      }),
    );
    on("history-button", () =>
      showHistory((past) => {
        if (this.controls.find(past.language)) this.controls.choose(past.language);
        this.show(past.cells);
      }),
    );
    on("request-button", () => {
      const wish = this.wish(this.controls.session && this.notebook.current ? [this.notebook.current] : this.notebook.code);
      if (this.controls.session && this.session.current) wish.session = this.session.current.id;
      const files = this.inputs.files.map((file) => file.name);
      showSnippets(snippets(this.service.base.href, wish, files, this.service.hasKey), (text) => this.says(text));
    });
    on("download-button", () => this.downloads());
    on("share-button", () => {
      if (this.reply) showShare(this.service, this.reply.id, (text) => this.says(text));
      else this.says("Run it first: what is shared is a run, with what came out.");
    });
    on("session-restart", () => void this.session.restart().then(() => this.says("The session has a new kernel: its variables are gone, its files are there."), (error: unknown) => this.says(String(error), "error")));
    on("session-close", () => void this.session.close());
    on("forget-key", () => {
      this.service.forgetKey();
      location.reload();
    });
    for (const [id, take] of [
      ["file-input", (files: File[]) => this.inputs.add(files)],
      ["open-input", (files: File[]) => void this.openFile(files[0])],
    ] as const) {
      const input = byId<HTMLInputElement>(id);
      input.addEventListener("change", () => {
        take([...(input.files ?? [])]);
        input.value = ""; // the same file may be chosen again
      });
    }
  }

  /** take is for files that are dropped: a notebook opens, all else goes with the run. */
  private async take(files: File[]): Promise<void> {
    const book = files.length === 1 && files[0]?.name.endsWith(".ipynb") ? files[0] : undefined;
    if (book) await this.openFile(book);
    else this.inputs.add(files);
  }

  private async openFile(file: File | undefined): Promise<void> {
    if (!file) return;
    try {
      const text = await file.text();
      if (file.name.endsWith(".ipynb")) {
        const book = readNotebook(text);
        const language = this.controls.find(book.language);
        if (language) this.controls.choose(language.language);
        this.show(book.cells);
        this.says(language ? `${file.name} is open.` : `${file.name} is in ${book.language}, which this service does not have.`, language ? "" : "error");
      } else {
        const language = this.controls.languages.find((l) => file.name.toLowerCase().endsWith(l.file_extension.toLowerCase()));
        if (language) this.controls.choose(language.language);
        this.show([{ kind: "code", text }]);
        this.says(`${file.name} is open.`);
      }
    } catch (error) {
      this.says(`${file.name} could not be opened: ${error instanceof Error ? error.message : String(error)}.`, "error");
    }
  }

  private show(cells: CellText[]): void {
    if (this.run) return this.says("A run goes on. Stop it first.", "error");
    this.reply = undefined;
    this.ran = [];
    this.images = [];
    this.hint("");
    this.showMade([], []);
    this.notebook.show(cells);
    this.says("");
    this.notebook.current?.command();
  }

  private wish(cells: Cell[]): Wish {
    return { cells: cells.map((cell) => cell.text), language: this.controls.language?.language ?? "", ...this.controls.wishes };
  }

  /** start runs cells, if there are any and nothing runs. */
  private start(cells: Cell[]): void {
    if (this.run) return this.says("A run goes on. Stop it first.");
    cells = cells.filter((cell) => cell.text.trim() !== "");
    if (cells.length === 0 || !this.controls.language) return this.says("There is no code to run.");
    if (this.inputs.files.reduce((sum, file) => sum + file.size, 0) > this.controls.maxUpload) {
      return this.says(`The files are larger than ${bytes(this.controls.maxUpload)}, which is what one run may have.`, "error");
    }
    this.ended = this.perform(cells);
  }

  private async perform(cells: Cell[]): Promise<void> {
    const run = new Run(this.service, cells, { says: (text) => this.says(text, "running"), file: (file) => this.fileMade(file) });
    this.run = run;
    this.ran = cells;
    this.reply = undefined;
    this.hint("");
    this.showMade([], []);
    this.running(true);
    const began = performance.now();
    const wish = this.wish(cells);
    let ending: Ending;
    try {
      if (this.controls.session) {
        this.says("Opening a session …", "running");
        wish.session = await this.session.ensure(wish, run.signal);
      }
      ending = await run.start(wish, this.inputs.files);
    } catch (error) {
      ending = run.signal.aborted ? { stopped: true } : { problem: error as Problem };
    }
    this.run = undefined;
    this.running(false);
    this.end(ending, performance.now() - began);
  }

  private end(ending: Ending, ms: number): void {
    let status = "stopped";
    if ("reply" in ending) {
      const { reply } = ending;
      this.reply = reply;
      this.images = this.controls.session ? [...this.images, ...reply.images] : reply.images;
      status = reply.status;
      this.ran.forEach((cell, i) => cell.settle(reply.outputs.filter((output) => output.cell === i))); // pictures that came with the reply
      this.showMade(reply.files, reply.skipped);
      this.hint(this.named(reply));
      this.says(ended(reply), reply.status === "ok" ? "ok" : "error");
      if (this.controls.session && this.inputs.files.length > 0) this.inputs.clear(); // the session has them
    } else if ("stopped" in ending) this.says("Stopped.", "error");
    else {
      const { problem } = ending;
      status = "failed";
      if (this.controls.session && (problem.status === 404 || problem.status === 410)) this.session.forget();
      this.says(problem.message, "error");
    }
    byId("forget-key").hidden = !this.service.hasKey;
    remember({ when: Date.now(), language: this.controls.language?.language ?? "", cells: this.notebook.texts, status, ms });
  }

  private running(running: boolean): void {
    byId("stop").hidden = !running;
    byId<HTMLButtonElement>("run").disabled = running;
    document.body.classList.toggle("busy", running);
  }

  private fileMade(file: MadeFile): void {
    this.showMade([...this.made.filter((f) => f.path !== file.path), file], []);
  }

  private showMade(files: MadeFile[], skipped: Reply["skipped"]): void {
    this.made = files;
    showMade(byId("made"), files, skipped, (url) => this.service.local(url));
  }

  /** cellOf tells which cell of the last run an execution count of a traceback is of. */
  private cellOf(count: number): number | undefined {
    if (!this.controls.session) return count <= this.ran.length ? count - 1 : undefined;
    return this.ran.length === 1 ? 0 : undefined;
  }

  /** widgets returns the state of the widgets, which the notebook of a run that has ended holds. */
  private async widgets(): Promise<unknown> {
    await new Promise((resolve) => setTimeout(resolve)); // the run may be about to be set
    await this.ended;
    const address = this.reply?.notebook && this.service.local(this.reply.notebook.url);
    if (!address) return undefined;
    const answer = await fetch(address, { credentials: "omit" });
    if (!answer.ok) return undefined;
    const book = (await answer.json()) as { metadata?: { widgets?: Record<string, unknown> } };
    return book.metadata?.widgets?.["application/vnd.jupyter.widget-state+json"];
  }

  private downloads(): void {
    const { language } = this.controls;
    if (!language) return;
    const code = () => this.notebook.cells.filter((cell) => cell.text.trim() !== "");
    showDownloads([
      {
        name: "notebook.ipynb",
        about: "The cells and what they put out, for Jupyter",
        save: () => saveAs("notebook.ipynb", "application/x-ipynb+json", writeNotebook(this.notebook.cells, language, this.images)),
      },
      {
        name: `notebook${language.file_extension}`,
        about: "The code alone",
        save: () => saveAs(`notebook${language.file_extension}`, "text/plain", code().filter((cell) => cell.kind === "code").map((cell) => cell.text).join("\n\n") + "\n"),
      },
      { name: "notebook.html", about: "A page that shows code and outputs, without this service", save: () => void this.saveRecord() },
    ]);
  }

  private async saveRecord(): Promise<void> {
    const cells = this.notebook.cells.filter((cell) => cell.text.trim() !== "");
    const sent = cells.filter((cell) => cell.kind === "code");
    const failed = this.reply?.error && this.ran[this.reply.error.cell];
    const run = {
      title: "notebox",
      language: this.controls.language?.language ?? "",
      cells: cells.map((cell) => ({ kind: cell.kind, text: cell.text, outputs: cell.result })),
      images: this.images,
      error: this.reply?.error && failed ? { ...this.reply.error, cell: sent.indexOf(failed) } : null,
      status: this.reply?.status ?? "",
      hint: this.reply?.hint ?? "",
      usage: this.reply?.usage ?? null,
      widgets: await this.widgets(),
    };
    saveAs("notebook.html", "text/html", await writeRecord(run, asset));
  }

  /** named is a hint with the cell by the number that it has here. */
  private named({ hint, error }: Reply): string {
    const cell = error && this.ran[error.cell];
    return cell ? hint.replace(` cell ${error.cell}:`, ` cell ${this.notebook.numberOf(cell)}:`) : hint;
  }

  private languageChanged(): void {
    this.notebook.setLanguage(this.controls.language);
    this.keepDraft();
    this.showSession();
    byId("run").title = this.controls.session ? "Run all cells in the session" : "Run all cells in a fresh sandbox";
  }

  private showSession(): void {
    const { current } = this.session;
    byId("session-line").hidden = !this.controls.session || !current;
    if (current) byId("session-text").textContent = `Session in ${current.language}, until ${new Date(current.expires_at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })} at the latest. Variables and files stay.`;
  }

  private says(text: string, tone: "" | "ok" | "error" | "running" = ""): void {
    const status = byId("status");
    if (status.textContent !== text) status.textContent = text;
    status.className = `status ${tone}`;
  }

  private hint(text: string): void {
    const hint = byId("hint");
    hint.hidden = text === "";
    hint.textContent = text;
  }

  /** keepDraft keeps the cells in this tab, for when it is loaded again. */
  private keepDraft(): void {
    clearTimeout(this.draftTimer);
    this.draftTimer = window.setTimeout(() => {
      const language = this.controls?.language?.language;
      if (!language) return;
      try {
        sessionStorage.setItem(draftName, JSON.stringify({ language, cells: this.notebook.texts }));
      } catch {
        sessionStorage.removeItem(draftName); // too large
      }
    }, draftPause);
  }
}

function readDraft(): { language: string; cells: CellText[] } | undefined {
  try {
    const draft = JSON.parse(sessionStorage.getItem(draftName) ?? "null") as { language: string; cells: CellText[] } | null;
    return draft?.cells.some((cell) => cell.text.trim() !== "") ? draft : undefined;
  } catch {
    return undefined;
  }
}

const words: Record<string, string> = {
  ok: "Done",
  error: "The code raised an error",
  timeout: "Out of time",
  out_of_memory: "Out of memory",
  killed: "Killed",
  output_limit: "Too much output",
  cancelled: "Stopped",
};

function ended(reply: Reply): string {
  const { usage } = reply;
  const parts = [words[reply.status] ?? reply.status, seconds(usage.wall_ms)];
  if (usage.queue_ms >= 100) parts.push(`waited ${seconds(usage.queue_ms)}`);
  if (usage.peak_memory_bytes > 0) parts.push(bytes(usage.peak_memory_bytes));
  if (reply.exit_code !== null) parts.push(`exit code ${reply.exit_code}`);
  if (reply.truncated) parts.push("output was cut");
  if (reply.session?.kernel_restarted) parts.push("the kernel is new, its variables are gone");
  return parts.join(" · ");
}

const texts = new Map<string, Promise<string>>();

/** asset returns the text of a part of the page, which is loaded once. */
function asset(name: string): Promise<string> {
  let text = texts.get(name);
  if (!text) {
    text = fetch(`page/${name}`).then((answer) => (answer.ok ? answer.text() : Promise.reject(new Error(`${name} is not there`))));
    texts.set(name, text);
    text.catch(() => texts.delete(name));
  }
  return text;
}
