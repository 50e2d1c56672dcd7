import type { Host } from "./host";

// Frames hold what may have scripts. A frame has an origin of its own and no network: it is
// sandboxed here, and by the policy of its document. It is told what to show, and tells its
// height; nothing else that it says is listened to.

/** What a frame may be told to show: html/frame.html reads it. */
export interface FrameContent {
  html?: string;
  problem?: string;
  scripts?: string[];
  plot?: unknown;
  widget?: { state: unknown; view: unknown };
}

/** Pixels that a frame may be high: what is higher scrolls in it. */
const maxHeight = 2000;
const firstHeight = 40;

const waiting = new WeakMap<object, (height: unknown) => void>();
let listening = false;

function listen(): void {
  if (listening) return;
  listening = true;
  window.addEventListener("message", (event) => {
    if (event.source) waiting.get(event.source)?.(event.data);
  });
}

/** newFrame returns a frame that shows content as soon as it is in the page. */
export function newFrame(host: Host, label: string, content: () => Promise<FrameContent>): HTMLIFrameElement {
  listen();
  const frame = document.createElement("iframe");
  frame.className = "sandboxed";
  frame.title = label;
  frame.setAttribute("sandbox", "allow-scripts");
  frame.setAttribute("referrerpolicy", "no-referrer");
  frame.height = String(firstHeight);
  let told = false;
  frame.addEventListener("load", () => {
    const inside = frame.contentWindow;
    if (!inside || told) return; // it is told once: where it goes by itself it gets nothing
    told = true;
    waiting.set(inside, (said) => {
      const height = (said as { height?: unknown } | null)?.height;
      if (typeof height === "number" && height > 0) frame.height = String(Math.min(Math.ceil(height), maxHeight));
    });
    content()
      .catch((error: unknown): FrameContent => ({ problem: error instanceof Error ? error.message : String(error) }))
      .then((what) => inside.postMessage(what, "*"));
  });
  host.startFrame(frame);
  return frame;
}
