import { byId } from "./controls";
import { bytes, seconds } from "./figures";
import type { Reply } from "./reply";

export type Tone = "" | "ok" | "error" | "running";

/** says shows in the line above the cells how things stand. */
export function says(text: string, tone: Tone = ""): void {
  const status = byId("status");
  if (status.textContent !== text) status.textContent = text;
  status.className = `status ${tone}`;
}

/** hint shows what to do about an error; "": nothing. */
export function hint(text: string): void {
  const element = byId("hint");
  element.hidden = text === "";
  element.textContent = text;
}

const words: Record<string, string> = {
  ok: "Done",
  error: "The code raised an error",
  timeout: "Out of time",
  out_of_memory: "Out of memory",
  killed: "Killed",
  output_limit: "Too much output",
  cancelled: "Stopped",
};

/** ended is how a run ended, and what it took. */
export function ended(reply: Reply): string {
  const { usage } = reply;
  const parts = [words[reply.status] ?? reply.status, seconds(usage.wall_ms)];
  if (usage.queue_ms >= 100) parts.push(`waited ${seconds(usage.queue_ms)}`);
  if (usage.peak_memory_bytes > 0) parts.push(bytes(usage.peak_memory_bytes));
  if (reply.exit_code !== null) parts.push(`exit code ${reply.exit_code}`);
  if (reply.truncated) parts.push("output was cut");
  if (reply.session?.kernel_restarted) parts.push("the kernel is new, its variables are gone");
  return parts.join(" · ");
}
