import type { Reply } from "../reply";

/** Recorded is one run, with all that is needed to show it without a service. */
export interface Recorded {
  title: string;
  language: string;
  cells: { kind: "code" | "markdown"; text: string; outputs: Reply["outputs"] }[];
  images: Reply["images"];
  error: Reply["error"];
  status: string;
  hint: string;
  usage: Reply["usage"] | null;
  widgets?: unknown;
  /** What package record, in Go, has beside that. */
  files?: { path: string; media_type: string; bytes: number; error?: string }[];
  skipped?: Reply["skipped"];
  notes?: string[];
}
