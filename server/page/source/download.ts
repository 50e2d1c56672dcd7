import type { Cell } from "./cell";
import { writeNotebook } from "./ipynb";
import { dataOf, isLink } from "./outputs/bundle";
import type { Recorded } from "./outputs/recorded";
import { asset } from "./pagehost";
import type { Language, Output } from "./reply";
import type { Runs } from "./runs";
import { says } from "./statusline";

/** downloads are what can be saved of the cells, and what they put out. */
export function downloads(cells: Cell[], language: Language, runs: Runs): { name: string; about: string; save: () => void }[] {
  const filled = cells.filter((cell) => cell.text.trim() !== "");
  const code = filled.filter((cell) => cell.kind === "code");
  const script = `notebook${language.file_extension}`;
  return [
    {
      name: "notebook.ipynb",
      about: "The cells and their outputs, for Jupyter",
      save: () => saveAs("notebook.ipynb", "application/x-ipynb+json", writeNotebook(cells, language)),
    },
    { name: script, about: "The code alone", save: () => saveAs(script, "text/plain", code.map((cell) => cell.text).join("\n\n") + "\n") },
    {
      name: "notebook.html",
      about: "A page with code and outputs, which needs no service",
      save: () =>
        void recordOf(filled, code, language, runs)
          .then(writeRecord)
          .then((page) => saveAs("notebook.html", "text/html", page))
          .catch((error: unknown) => says(`notebook.html could not be made: ${error instanceof Error ? error.message : String(error)}.`, "error")),
    },
  ];
}

/** saveAs has the browser save a text as a file. */
function saveAs(name: string, mediaType: string, text: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type: mediaType }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

async function recordOf(cells: Cell[], code: Cell[], language: Language, runs: Runs): Promise<Recorded> {
  const { reply } = runs;
  return {
    title: "notebox",
    language: language.language,
    cells: cells.map((cell) => ({ kind: cell.kind, text: cell.text, outputs: cell.result.map((output) => withPictures(output, cell)) })),
    images: [],
    error: runs.failed(code),
    status: reply?.status ?? "",
    hint: reply?.hint ?? "",
    usage: reply?.usage ?? null,
    widgets: await runs.widgets(),
  };
}

/** withPictures has the images of a cell's run in the output itself: another cell's have the same names. */
function withPictures(output: Output, cell: Cell): Output {
  if (output.type === "stream" || output.type === "error") return output;
  const data = Object.entries(output.data).map(([mediaType, value]) => {
    const url = isLink(value) && dataOf(value, mediaType, cell.images);
    return [mediaType, url ? { ...value, url } : value] as const;
  });
  return { ...output, data: Object.fromEntries(data) };
}

/**
 * writeRecord returns a page that shows a run without a service: record.txt with four places
 * filled in. page.WriteRecord, in Go, does the same.
 */
async function writeRecord(run: Recorded): Promise<string> {
  const json = inScript(run);
  const needed = [
    ["plotly.js", "application/vnd.plotly.v1+json"],
    ["widgets.js", "application/vnd.jupyter.widget-view+json"],
  ].filter(([, mediaType]) => json.includes(`"${mediaType}"`));
  const scripts = await Promise.all(needed.map(async ([name = ""]) => `<script type="application/json" id="script-${name}">${inScript(await asset(name))}</script>`));
  let left = await asset("record.txt");
  let page = "";
  for (const [place, content] of [
    ["{title}", run.title],
    ["{head}", ""],
    ["{run}", json],
    ["{scripts}", scripts.join("\n")],
  ] as const) {
    const at = left.indexOf(place);
    page += left.slice(0, at) + content;
    left = left.slice(at + place.length);
  }
  return page + left;
}

/** inScript is a value as JSON that does not end a script element. */
function inScript(value: unknown): string {
  return JSON.stringify(value).replaceAll("<", "\\u003c");
}
