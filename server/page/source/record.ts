import { seconds, bytes } from "./figures";
import { OutputArea } from "./outputs/area";
import type { Host } from "./outputs/host";
import { showMarkdown } from "./outputs/markdown";
import type { Recorded } from "./outputs/recorded";
import type { BlobLink } from "./reply";

// A record shows one run in a page of its own, html/record.html, which needs no service: the
// run is in it as JSON, and so are the scripts of frames.

function textOf(id: string): string {
  return document.getElementById(id)?.textContent ?? "";
}

function hostOf(run: Recorded): Host {
  const image = (link: BlobLink) => run.images.find((image) => image.name === link.name && image.data);
  return {
    picture: (link, mediaType) => {
      const found = image(link);
      return found ? `data:${mediaType};base64,${found.data}` : undefined;
    },
    download: (link) => (/^https?:/.test(link.url) ? link.url : undefined),
    startFrame: (frame) => (frame.srcdoc = JSON.parse(textOf("frame")) as string),
    script: async (name) => textOf(`script-${name}`) || Promise.reject(new Error("This is shown in the page alone.")),
    widgets: async () => run.widgets,
    goTo: (cell, line) => goTo(cell, line),
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

/** show fills the page with a run. */
function show(run: Recorded): void {
  const host = hostOf(run);
  document.title = run.title;
  const main = document.querySelector("main");
  if (!main) return;
  let code = 0;
  const sent = run.cells.filter((cell) => cell.kind === "code").length;
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
      new OutputArea(outputs, host, (count) => (count <= sent ? count - 1 : undefined)).settle(cell.outputs);
    }
    main.append(section);
  }
  const end = document.createElement("p");
  end.className = "status";
  end.textContent = [run.status, run.usage && seconds(run.usage.wall_ms), run.usage?.peak_memory_bytes && bytes(run.usage.peak_memory_bytes), run.hint].filter(Boolean).join(" · ");
  main.append(end);
}

show(JSON.parse(textOf("run")) as Recorded);
