import { byId, Controls } from "./controls";
import { askKey, confirm } from "./dialog";
import { downloads } from "./download";
import { type Draft, isBlank, keepDraft, readDraft } from "./draft";
import { first } from "./examples";
import { notRun, remember } from "./history";
import { Inputs, onDrop } from "./inputs";
import { Notebook, type CellText } from "./notebook";
import { choose, type Opened, readFile } from "./opening";
import { pageHost } from "./pagehost";
import { showDownloads, showExamples, showHistory, showKeys, showSnippets } from "./panels";
import { Runs } from "./runs";
import { Service } from "./service";
import { SessionKeeper } from "./session";
import { readShared, sharedRun, showShare } from "./share";
import { snippets } from "./snippets";
import { says } from "./statusline";
import { startTheme } from "./theme";

/** App is the page: it wires its parts. */
export class App {
  private readonly service = new Service(askKey);
  private readonly controls: Controls;
  private readonly notebook: Notebook;
  private readonly inputs: Inputs;
  private readonly session = new SessionKeeper(this.service, () => this.showSession());
  private readonly runs: Runs;
  /** The cells that the page itself has put there: nobody's own. */
  private given: CellText[] = [];
  /** The language of what was here before; "": nothing was. */
  private kept = "";

  constructor() {
    startTheme(byId<HTMLButtonElement>("theme-button"));
    this.notebook = new Notebook(byId("cells"), pageHost(this.service, () => this.runs), {
      run: (cell) => this.runs.start(this.controls.session ? [cell] : this.notebook.code),
      changed: () => keepDraft(() => this.draft()),
    });
    this.controls = new Controls(() => this.languageChanged());
    this.inputs = new Inputs(byId("inputs"), () => undefined);
    this.runs = new Runs(this.service, this.controls, this.notebook, this.inputs, this.session);
    this.buttons();
    onDrop(byId("drop"), (files) => void this.take(files));
  }

  /** open asks the service what it offers, and shows what was here before or an example. */
  async open(): Promise<void> {
    const draft = readDraft();
    this.kept = draft?.language ?? "";
    this.notebook.show(draft?.cells ?? []);
    byId("again").addEventListener("click", () => void this.load());
    await this.load();
  }

  private async load(): Promise<void> {
    byId("again").hidden = true;
    try {
      this.controls.fill(await this.service.environments());
    } catch (error) {
      byId("again").hidden = false;
      says(messageOf(error), "error");
      return;
    } finally {
      byId("forget-key").hidden = !this.service.hasKey;
    }
    says("");
    choose(this.kept, this.controls);
    this.given = first(this.controls.language?.language ?? "");
    if (isBlank(this.notebook.texts)) this.notebook.show(this.given); // else there is a draft
    byId<HTMLButtonElement>("run").disabled = !this.controls.language;
    if (!this.controls.language) says("No language is installed. An operator builds their images.", "error");
    if (this.notebook.current?.kind === "code") this.notebook.current.edit("end");
    await this.openShared();
    addEventListener("hashchange", () => void this.openShared());
  }

  /** openShared shows the code of a run that somebody shares, if the address names one. It runs when the visitor says so. */
  private async openShared(): Promise<void> {
    const address = sharedRun();
    if (!address) return;
    history.replaceState(null, "", location.pathname + location.search); // it is opened once
    if (document.querySelector("dialog")) return; // which may be about another one
    try {
      const shared = await readShared(this.service, address);
      const kept = this.isOwn;
      if (this.runs.running) return says("A run goes on. Stop it, then open the shared run again.", "error");
      if ((kept || this.session.current || this.inputs.files.length > 0) && !(await this.agrees(kept))) return says("The shared run was not opened.");
      if (!this.show(shared.cells)) return;
      this.startAfresh();
      const unknown = choose(shared.language, this.controls);
      this.given = shared.cells;
      says(unknown ? `The run ${unknown}` : "This is the code of a run that was shared with you. It has not run here. Read it, then press Run.", unknown ? "error" : "");
    } catch (error) {
      says(`The run could not be opened: ${messageOf(error)}`, "error");
    }
  }

  private agrees(kept: boolean): Promise<boolean> {
    const losses = [kept && "Your cells go to the History.", this.session.current && "Your session is closed.", this.inputs.files.length > 0 && "Your files are left out."];
    return confirm("Open the shared run?", ["Its code replaces the cells here.", ...losses].filter(Boolean).join(" "), "Open it", "Keep what is here");
  }

  /** startAfresh is for a stranger's code: it gets no session, no files and no network that somebody gave to code of their own. */
  private startAfresh(): void {
    void this.session.close();
    this.inputs.clear();
    this.controls.reset();
  }

  /** Whether there is something in the cells that the page has not put there, or what came out of them. */
  private get isOwn(): boolean {
    const { texts } = this.notebook;
    return !isBlank(texts) && (this.runs.reply !== undefined || JSON.stringify(texts) !== JSON.stringify(this.given));
  }

  private draft(): Draft {
    return { language: this.controls.language?.language ?? this.kept, cells: this.notebook.texts };
  }

  private buttons(): void {
    const on = (id: string, act: () => void) => byId(id).addEventListener("click", act);
    on("run", () => this.runs.start(this.notebook.code));
    on("stop", () => this.runs.stop());
    on("add-code", () => this.notebook.insert(this.notebook.cells.length).edit());
    on("add-text", () => this.notebook.insert(this.notebook.cells.length, "markdown").edit());
    on("files-button", () => byId("file-input").click());
    on("open-button", () => byId("open-input").click());
    on("keys-button", showKeys);
    on("examples-button", () => showExamples(this.controls.languages, (language, example) => this.showGiven({ language, cells: example.cells })));
    on("history-button", () => showHistory((past) => this.showGiven(past), (run) => this.share(run)));
    on("request-button", () => this.showRequest());
    on("download-button", () => {
      const { language } = this.controls;
      if (language) showDownloads(downloads(this.notebook.cells, language, this.runs));
    });
    on("share-button", () => {
      if (this.runs.reply) this.share(this.runs.reply.id);
      else says("Run it first: a link shows one run. Earlier runs are in the History.");
    });
    on("session-restart", () => void this.session.restart().then(() => says("The session has a new kernel: its variables are gone, its files are there."), (error: unknown) => says(String(error), "error")));
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

  private share(run: string): void {
    showShare(this.service, run);
  }

  private showRequest(): void {
    const wish = this.runs.wish(this.controls.session && this.notebook.current ? [this.notebook.current] : this.notebook.code);
    if (this.controls.session && this.session.current) wish.session = this.session.current.id;
    const files = this.inputs.files.map((file) => file.name);
    showSnippets(snippets(this.service.base.href, wish, files, this.service.hasKey));
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
      const opened = await readFile(file, this.controls);
      if (!this.show(opened.cells)) return;
      const unknown = choose(opened.language, this.controls);
      says(`${file.name} ${unknown ?? "is open."}`, unknown ? "error" : "");
    } catch (error) {
      says(`${file.name} could not be opened: ${messageOf(error)}.`, "error");
    }
  }

  /** showGiven shows what is here again whenever somebody wants it: an example, a run of the History. */
  private showGiven({ language, cells }: Opened): void {
    if (!this.show(cells)) return;
    choose(language, this.controls);
    this.given = cells;
  }

  /** show replaces the cells; somebody's own go to the History. It returns false if a run goes on, and says so. */
  private show(cells: CellText[]): boolean {
    if (this.runs.running) {
      says("A run goes on. Stop it first.", "error");
      return false;
    }
    if (this.isOwn) remember({ when: Date.now(), status: notRun, ms: 0, ...this.draft() });
    this.runs.forget();
    this.given = [];
    this.notebook.show(cells);
    says("");
    this.notebook.current?.command();
    return true;
  }

  private languageChanged(): void {
    this.notebook.setLanguage(this.controls.language);
    keepDraft(() => this.draft());
    this.showSession();
    byId("run").title = this.controls.session ? "Run all cells in the session" : "Run all cells in a fresh sandbox";
  }

  private showSession(): void {
    const { current } = this.session;
    byId("session-line").hidden = !this.controls.session || !current;
    if (current) byId("session-text").textContent = `Session in ${current.language}, until ${new Date(current.expires_at).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })} at the latest. Variables and files stay.`;
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
