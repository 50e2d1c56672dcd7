import type { CellText } from "./notebook";

// What was run is remembered in this browser: the code and how it ended. Outputs, files and
// keys are not.

export interface Past {
  when: number;
  language: string;
  cells: CellText[];
  status: string;
  ms: number;
}

const name = "notebox.history";
const mostRuns = 50;
const mostChars = 500_000; // of all runs: browsers keep some megabytes for a site

export function pastRuns(): Past[] {
  try {
    const read = JSON.parse(localStorage.getItem(name) ?? "[]") as unknown;
    return Array.isArray(read) ? (read as Past[]) : [];
  } catch {
    return [];
  }
}

/** remember puts a run before the others; a run of the same code takes the place of the last. */
export function remember(run: Past): void {
  const all = pastRuns();
  const code = JSON.stringify(run.cells);
  if (all[0] && JSON.stringify(all[0].cells) === code) all.shift();
  all.unshift(run);
  let left = mostChars;
  const kept = all.slice(0, mostRuns).filter((past) => (left -= JSON.stringify(past).length) > 0);
  try {
    localStorage.setItem(name, JSON.stringify(kept));
  } catch {
    localStorage.removeItem(name); // it is full
  }
}

export function forgetRuns(): void {
  localStorage.removeItem(name);
}
