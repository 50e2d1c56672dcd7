import { askKey } from "./dialog";
import { seconds } from "./figures";
import type { ServiceStatus } from "./reply";
import { Problem, Service } from "./service";
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
  byId("runs").replaceChildren(
    ...status.runs.map((run) => {
      const row = document.createElement("tr");
      const ended = run.status !== "running";
      for (const cell of [new Date(run.started).toLocaleString(), run.language + (run.session ? ", session" : ""), run.status.replaceAll("_", " "), ended ? seconds(run.wall_ms) : "", ended ? seconds(run.queue_ms) : "", run.id]) {
        row.insertCell().textContent = cell;
      }
      row.dataset["status"] = run.status;
      return row;
    }),
  );
}

/** look reports whether there is a use in looking again. */
async function look(): Promise<boolean> {
  try {
    show(await service.status());
    says("Live");
  } catch (error) {
    says(error instanceof Error ? error.message : String(error), true);
    return !(error instanceof Problem && error.status === 401); // nobody is asked for a key again and again
  }
  return true;
}

async function live(): Promise<void> {
  for (;;) {
    if (!document.hidden && !(await look())) return;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}

startTheme(byId("theme-button") as HTMLButtonElement);
void live();
