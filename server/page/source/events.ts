// Server-sent events of one answer, as the service writes them: an event and one line of data.

export interface ServerEvent {
  name: string;
  data: unknown;
}

/** readEvents gives the events of a body one after another, until it ends. */
export async function* readEvents(body: ReadableStream<Uint8Array<ArrayBuffer>>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let parts: string[] = []; // of an event that has not come in whole: the last one may be megabytes
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      let rest = value;
      if (parts.length > 0 && parts.at(-1)?.endsWith("\n")) rest = (parts.pop() ?? "") + rest; // its empty line may be cut
      for (let end = rest.indexOf("\n\n"); end >= 0; end = rest.indexOf("\n\n")) {
        const event = parse(parts.join("") + rest.slice(0, end));
        parts = [];
        rest = rest.slice(end + 2);
        if (event) yield event;
      }
      if (rest) parts.push(rest);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function parse(block: string): ServerEvent | undefined {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    else if (line.startsWith("data: ")) data += line.slice(6);
  }
  return name ? { name, data: JSON.parse(data || "null") } : undefined;
}
