import type { CellText } from "./notebook";

// What was run is remembered in this browser: the code and how it ended. Outputs, files and
// keys are not.

export interface Past {
  /** Of the run; none, if it has none. */
  id?: string;
  /** Until when a link to it works that was made here. */
  shared?: number;
  when: number;
  language: string;
  cells: CellText[];
  status: string;
  ms: number;
}

/** The status of code that is kept and has not run. */
export const notRun = "not run";

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

/** remember puts a run before the others; a run of the same code takes the place of the last. What has not run takes no run's place. */
export function remember(run: Past): void {
  const all = pastRuns();
  const code = JSON.stringify(run.cells);
  if (all[0] && JSON.stringify(all[0].cells) === code) {
    if (!run.id && (all[0].id || run.status === notRun)) return;
    if (!isShared(all[0])) all.shift();
  }
  all.unshift(run);
  let left = mostChars;
  const fits = (past: Past) => {
    const size = JSON.stringify(past).length;
    if (size > left) return false;
    left -= size;
    return true;
  };
  keep(all.filter((past, i) => (i < mostRuns || isShared(past)) && fits(past)));
}

/** isShared says that a link to it works, as far as this browser knows. It is kept until then. */
export function isShared(past: Past): boolean {
  return (past.shared ?? 0) > Date.now();
}

/** noteShared remembers until when a link to a run works; undefined: there is none. */
export function noteShared(run: string, until: number | undefined): void {
  keep(pastRuns().map(({ shared, ...past }) => ({ ...past, ...(past.id === run ? until && { shared: until } : shared && { shared }) })));
}

function keep(runs: Past[]): void {
  try {
    localStorage.setItem(name, JSON.stringify(runs));
  } catch {
    localStorage.removeItem(name); // it is full
  }
}

export function forgetRuns(): void {
  localStorage.removeItem(name);
}
