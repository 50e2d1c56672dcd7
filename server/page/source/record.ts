import { bytes, printable, seconds } from "./figures";
import { OutputArea } from "./outputs/area";
import { dataOf } from "./outputs/bundle";
import type { Host } from "./outputs/host";
import { showMarkdown } from "./outputs/markdown";
import type { Recorded } from "./outputs/recorded";
import { linesOf } from "./outputs/traceback";
import { ownQuery } from "./query";

// A record shows one run in a page of its own, html/record.html, which needs no service: the
// run is in it as JSON, and so are the scripts of frames.

function textOf(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

/** shared is where a shared run is run again, and where its parts are; undefined: this is a file. */
function shared(): { again: string; part: (folder: "files" | "images", name: string) => string } | undefined {
  const id = document.querySelector<HTMLMetaElement>('meta[name="notebox-run"]')?.content;
  if (!id) return undefined;
  const query = ownQuery(location.search);
  const part = (folder: string, name: string) => `${location.pathname.replace(/\/$/, "")}/${folder}/${name.split("/").map(encodeURIComponent).join("/")}?${query}`;
  return { again: `../#r/${id}?${query}`, part };
}

function hostOf(run: Recorded): Host {
  return {
    picture: (link, mediaType) => (link.url.startsWith("data:") ? link.url : dataOf(link, mediaType, run.images)),
    download: (link) => shared()?.part("images", link.name) ?? (/^https?:/.test(link.url) ? link.url : undefined),
    startFrame: (frame) => (frame.srcdoc = JSON.parse(textOf("frame")) as string),
    script: async (name) => {
      const text = textOf(`script-${name}`);
      if (!text) throw new Error("this file does not have what shows it");
      return JSON.parse(text) as string;
    },
    widgets: async () => run.widgets,
    mathml: true,
  };
}

function goTo(cell: number, line: number): void {
  const place = document.querySelectorAll(".source-code")[cell]?.querySelectorAll(".source-line")[line - 1];
  place?.scrollIntoView({ block: "center" });
}

function codeOf(text: string, failing: number): HTMLElement {
  const pre = document.createElement("pre");
  pre.className = "source-code";
  pre.tabIndex = 0;
  text.split("\n").forEach((line, i) => {
    const element = document.createElement("span");
    element.className = i + 1 === failing ? "source-line failing" : "source-line";
    element.textContent = line + "\n";
    pre.append(element);
  });
  return pre;
}

/** top is what a shared run begins with: what it is, and the way to run it again. */
function top(run: Recorded): HTMLElement | undefined {
  const of = shared();
  if (!of) return undefined;
  const header = document.createElement("header");
  header.className = "shared";
  const title = document.createElement("h1");
  title.textContent = run.title;
  const again = document.createElement("a");
  again.className = "again";
  again.href = of.again;
  again.textContent = "Run it again";
  header.append(title, again);
  return header;
}

function ending(run: Recorded): HTMLElement {
  const end = document.createElement("footer");
  const line = document.createElement("p");
  line.className = "status";
  line.textContent = [run.language, run.status, run.usage && seconds(run.usage.wall_ms), run.usage?.peak_memory_bytes && bytes(run.usage.peak_memory_bytes), run.hint].filter(Boolean).join(" · ");
  end.append(line);
  for (const note of run.notes ?? []) {
    const element = document.createElement("p");
    element.className = "gap";
    element.textContent = note;
    end.append(element);
  }
  return end;
}

/** made lists the files of the run, with what was left behind. */
function made(run: Recorded): HTMLElement | undefined {
  const { files = [], skipped = [] } = run;
  if (files.length + skipped.length === 0) return undefined;
  const section = document.createElement("section");
  section.className = "recorded";
  const heading = document.createElement("h2");
  heading.textContent = "Files";
  const list = document.createElement("ul");
  for (const file of files) {
    const item = document.createElement("li");
    const path = file.path.replace(/^\/mnt\/data\//, "");
    const address = file.error ? undefined : shared()?.part("files", path);
    if (address) {
      const link = document.createElement("a");
      link.href = address;
      link.download = "";
      link.textContent = printable(path);
      item.append(link, ` ${bytes(file.bytes)}`);
    } else item.append(`${printable(path)} ${bytes(file.bytes)}${file.error ? `: ${file.error}` : ""}`);
    list.append(item);
  }
  for (const { path, reason } of skipped) {
    const item = document.createElement("li");
    item.append(`${printable(path)} was left behind: ${reason}`);
    list.append(item);
  }
  section.append(heading, list);
  return section;
}

/** show fills the page with a run. */
function show(run: Recorded): void {
  const host = hostOf(run);
  document.title = run.title;
  const main = document.querySelector("main");
  if (!main) return;
  const header = top(run);
  if (header) main.before(header);
  let code = 0;
  const lines = linesOf(run.error, run.cells.flatMap((cell) => (cell.kind === "code" ? [cell.text] : [])), goTo);
  for (const cell of run.cells) {
    const section = document.createElement("section");
    section.className = "recorded";
    if (cell.kind === "markdown") section.append(showMarkdown(cell.text, host));
    else {
      const at = code++;
      section.append(codeOf(cell.text, run.error?.cell === at ? run.error.line : 0));
      const outputs = document.createElement("div");
      outputs.className = "outputs";
      section.append(outputs);
      new OutputArea(outputs, host).settle(cell.outputs, lines);
    }
    main.append(section);
  }
  const files = made(run);
  if (files) main.append(files);
  main.after(ending(run));
}

show(JSON.parse(textOf("run")) as Recorded);
