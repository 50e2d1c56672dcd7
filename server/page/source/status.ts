import { askKey, makeButton } from "./dialog";
import { seconds } from "./figures";
import type { PastRun, ServiceStatus } from "./reply";
import { Problem, Service } from "./service";
import { showShare } from "./share";
import { startTheme } from "./theme";

// The page at /status: what the service does, and the caller's own last runs.

/** Milliseconds between two looks, while somebody sees the page. */
const pause = 2000;

const service = new Service(askKey);
let shown = "";

function byId(id: string): HTMLElement {
  const element = document.getElementById(id);
  if (!element) throw new Error(`${id} is not in the page`);
  return element;
}

function says(text: string, error = false): void {
  const status = byId("status");
  if (status.textContent !== text) status.textContent = text;
  status.className = error ? "status error" : "status ok";
}

function show(status: ServiceStatus): void {
  const text = JSON.stringify(status);
  if (text === shown) return; // who reads it is not disturbed
  shown = text;
  const { pool } = status;
  const figures: [string, number | null | undefined][] = [
    ["Running", status.running],
    ["Waiting", status.waiting],
    ["Warm", pool?.warm],
    ["Starting", pool?.starting],
    ["Sessions", pool?.sessions],
    ["Sandboxes", pool?.sandboxes],
  ];
  byId("now").replaceChildren(
    ...figures.flatMap(([name, count]) => {
      if (count === null || count === undefined) return [];
      const box = document.createElement("div");
      const term = document.createElement("dt");
      term.textContent = name;
      const value = document.createElement("dd");
      value.textContent = String(count);
      box.append(term, value);
      return [box];
    }),
  );
  byId("none").hidden = status.runs.length > 0;
  const focused = document.activeElement?.closest<HTMLElement>("#runs tr")?.dataset["run"];
  byId("runs").replaceChildren(...status.runs.map(row));
  if (focused) document.querySelector<HTMLElement>(`#runs tr[data-run="${CSS.escape(focused)}"] button`)?.focus();
}

function row(run: PastRun): HTMLElement {
  const element = document.createElement("tr");
  const ended = run.status !== "running";
  for (const cell of [new Date(run.started).toLocaleString(), run.language + (run.session ? ", session" : ""), run.status.replaceAll("_", " "), ended ? seconds(run.wall_ms) : "", ended ? seconds(run.queue_ms) : "", run.id]) {
    element.insertCell().textContent = cell;
  }
  element.dataset["status"] = run.status;
  element.dataset["run"] = run.id;
  const link = element.insertCell();
  if (ended) {
    const button = makeButton("Share", () => showShare(service, run.id));
    button.setAttribute("aria-label", `Share ${run.id}, or revoke its link`);
    link.append(button);
  }
  return element;
}

/** look returns the milliseconds until it is of use to look again; undefined: it is of none. */
async function look(): Promise<number | undefined> {
  byId("again").hidden = true;
  try {
    show(await service.status());
    if (byId("status").classList.contains("error") || byId("status").textContent === "") says("Live");
    return pause;
  } catch (error) {
    says(error instanceof Error ? error.message : String(error), true);
    if (!(error instanceof Problem)) return pause;
    if (error.status !== 401) return Math.max(pause, error.retryAfter * 1000);
    byId("again").hidden = false; // nobody is asked for a key again and again
    return undefined;
  }
}

async function live(): Promise<void> {
  for (;;) {
    const wait = document.hidden ? pause : await look();
    if (wait === undefined) return;
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

startTheme(byId("theme-button") as HTMLButtonElement);
byId("again").addEventListener("click", () => void live());
void live();
