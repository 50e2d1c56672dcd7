import { bytes, printable } from "./figures";
import type { MadeFile, Reply } from "./reply";

// The files that a run made: their name, their size, a look into them, and the file itself.

/** Bytes of a file that are read for a look into it. */
const previewBytes = 64 << 10;
const previewRows = 50;
const previewColumns = 30;

const pictures = new Set(["image/png", "image/jpeg", "image/gif", "image/webp", "image/svg+xml"]);
const texts = /^(text\/|application\/(json|xml|x-ndjson|x-ipynb\+json|javascript|yaml|toml))/;

/** showMade fills the list. local says where a file is reached from here. */
export function showMade(element: HTMLElement, files: MadeFile[], skipped: Reply["skipped"], local: (url: string) => string | undefined): void {
  element.hidden = files.length === 0 && skipped.length === 0;
  element.replaceChildren();
  if (element.hidden) return;
  const heading = document.createElement("h2");
  heading.textContent = "Files";
  const list = document.createElement("ul");
  list.append(...files.map((file) => item(file, local)), ...skipped.map(left));
  element.append(heading, list);
}

function item(file: MadeFile, local: (url: string) => string | undefined): HTMLElement {
  const element = document.createElement("li");
  const row = document.createElement("div");
  row.className = "made-row";
  const name = document.createElement("span");
  name.className = "made-name";
  name.textContent = printable(file.path.replace(/^\/mnt\/data\//, ""));
  const size = document.createElement("span");
  size.className = "made-size";
  size.textContent = bytes(file.bytes);
  row.append(name, size);
  element.append(row);
  if (file.error || !file.url) {
    row.append(` could not be stored: ${file.error ?? ""}`);
    return element;
  }
  const address = local(file.url);
  if (address && (pictures.has(file.media_type) || texts.test(file.media_type))) {
    const details = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "Preview";
    summary.setAttribute("aria-label", `Preview ${name.textContent}`);
    details.append(summary);
    details.addEventListener("toggle", () => void preview(details, file, address), { once: true });
    element.append(details);
  }
  const link = document.createElement("a");
  link.href = address ?? file.url;
  link.download = "";
  link.textContent = "Download";
  link.setAttribute("aria-label", `Download ${name.textContent}`);
  row.append(link);
  return element;
}

function left(skipped: { path: string; reason: string }): HTMLElement {
  const element = document.createElement("li");
  element.className = "made-left";
  element.textContent = `${printable(skipped.path)} was left behind: ${skipped.reason}`;
  return element;
}

async function preview(details: HTMLElement, file: MadeFile, address: string): Promise<void> {
  if (pictures.has(file.media_type)) {
    const picture = document.createElement("img");
    picture.src = address;
    picture.alt = `Picture ${printable(file.name)}`;
    details.append(picture);
    return;
  }
  const box = document.createElement("div");
  box.className = "scroll";
  box.tabIndex = 0;
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `Content of ${printable(file.name)}`);
  details.append(box);
  try {
    const answer = await fetch(address, { headers: { Range: `bytes=0-${previewBytes - 1}` }, credentials: "omit" });
    if (!answer.ok) throw new Error(`the service answered ${answer.status}`);
    const text = (await answer.text()).slice(0, previewBytes);
    if (/csv|tab-separated/.test(file.media_type)) box.append(table(text, file.media_type.includes("tab") ? "\t" : ","));
    else {
      const pre = document.createElement("pre");
      pre.textContent = text;
      box.append(pre);
    }
    if (file.bytes > previewBytes) box.append(note(`The first ${bytes(previewBytes)} of ${bytes(file.bytes)}.`));
  } catch (error) {
    box.append(note(`There is no preview: ${error instanceof Error ? error.message : String(error)}.`));
  }
}

function note(text: string): HTMLElement {
  const element = document.createElement("p");
  element.className = "gap";
  element.textContent = text;
  return element;
}

function table(text: string, separator: string): HTMLElement {
  const rows = parseTable(text, separator, previewRows + 1);
  const element = document.createElement("table");
  rows.forEach((cells, i) => {
    const row = element.insertRow();
    for (const cell of cells.slice(0, previewColumns)) {
      const place = document.createElement(i === 0 ? "th" : "td");
      if (i === 0) place.setAttribute("scope", "col");
      place.textContent = cell.slice(0, 500);
      row.append(place);
    }
  });
  return element;
}

/** parseTable reads rows of comma-separated values (RFC 4180), at most so many. */
export function parseTable(text: string, separator: string, most: number): string[][] {
  const rows: string[][] = [];
  let row: string[] = [];
  let cell = "";
  let quoted = false;
  for (let i = 0; i < text.length && rows.length < most; i++) {
    const c = text.charAt(i);
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text.charAt(i + 1) === '"') {
        cell += c;
        i++;
      } else quoted = false;
    } else if (c === '"' && cell === "") quoted = true;
    else if (c === separator) {
      row.push(cell);
      cell = "";
    } else if (c === "\n") {
      row.push(cell.replace(/\r$/, ""));
      rows.push(row);
      row = [];
      cell = "";
    } else cell += c;
  }
  if (rows.length < most && (cell !== "" || row.length > 0)) rows.push([...row, cell]);
  return rows;
}
