// Sends what JavaScript puts out through a pipe to denorelay.py, in order and before the next
// statement. Records: "KIND LENGTH\n" and so many bytes; stdout and stderr are text, message
// is JSON.
export function redirect(path) {
  const pipe = Deno.openSync(path, { write: true });
  const encoder = new TextEncoder();

  const writeAll = (bytes) => {
    for (let at = 0; at < bytes.length;) at += pipe.writeSync(bytes.subarray(at));
  };
  const send = (kind, bytes) => {
    const head = encoder.encode(`${kind} ${bytes.length}\n`);
    if (bytes.length > 4096) { // no copy of what is large
      writeAll(head);
      writeAll(bytes);
      return;
    }
    const record = new Uint8Array(head.length + bytes.length);
    record.set(head);
    record.set(bytes, head.length);
    writeAll(record);
  };
  const say = (msg_type, content, metadata = {}) =>
    send("message", encoder.encode(JSON.stringify({ msg_type, content, metadata })));

  // Whoever has the console already has its new methods too.
  const print = (text, level) => send(level > 1 ? "stderr" : "stdout", encoder.encode(text));
  Object.assign(console, new Deno[Deno.internal].Console(print));

  // process.stdout and process.stderr write to these.
  for (const name of ["stdout", "stderr"]) {
    Deno[name].writeSync = (bytes) => {
      send(name, bytes);
      return bytes.length;
    };
    // deno-lint-ignore require-await
    Deno[name].write = async (bytes) => Deno[name].writeSync(bytes);
  }
  return { print, say };
}
