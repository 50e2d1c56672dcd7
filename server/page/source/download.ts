import type { Recorded } from "./outputs/recorded";

/** saveAs has the browser save a text as a file. */
export function saveAs(name: string, mediaType: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: mediaType }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

/** inScript is a text as it may stand in a script element: nothing in it ends that. */
function inScript(text: string): string {
  return text.replace(/<(?=\/script|script|!--)/gi, "\\u003c");
}

function jsonInScript(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}

function escapeHTML(text: string): string {
  return text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** writeRecord returns a page that shows a run without a service. asset gives the text of a part of the page. */
export async function writeRecord(run: Recorded, asset: (name: string) => Promise<string>): Promise<string> {
  const json = jsonInScript(run);
  const wanted = (["plotly.js", "widgets.js"] as const).filter((name) => json.includes(name === "plotly.js" ? '"application/vnd.plotly.v1+json"' : '"application/vnd.jupyter.widget-view+json"'));
  const scripts = await Promise.all(wanted.map(async (name) => `<script type="text/plain" id="script-${name}">${inScript(await asset(name))}</script>`));
  const parts: Record<string, string> = {
    title: escapeHTML(run.title),
    head: "",
    style: await asset("outputs.css"),
    run: json,
    frame: jsonInScript(await asset("frame")),
    scripts: scripts.join("\n"),
    record: inScript(await asset("record.js")),
  };
  return (await asset("record.html")).replace(/\{(title|head|style|run|frame|scripts|record)\}/g, (_whole, name: string) => parts[name] ?? "");
}
