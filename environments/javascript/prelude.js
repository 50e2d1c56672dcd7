// Run once, silently, in Deno's kernel before any cell. What cells put out goes into a pipe
// to denorelay.py (output.js) instead of the queue to the thread that speaks to Jupyter:
// that one says idle before it has sent all, and mixes a large message up with the next.
// A cell is over when what it has started is.
await (async () => {
  const internals = Deno[Deno.internal];
  const { core } = internals;
  // Cells may have variables of these names.
  const { setTimeout, clearTimeout, process, performance } = globalThis;
  const { redirect } = await import("file://{folder}/output.js");
  const { run } = await import("file://{folder}/programs.js");
  const { print, say } = redirect("{pipe}");

  // What children and workers inherit is a pipe that Deno reads itself, and drops. They get
  // what the process was started with, which the relay reads.
  const heirs = 'o=$(readlink /proc/$$/fd/1); e=$(readlink /proc/$$/fd/2); echo "$o $e" >"$0"';
  const list = "{pipe}.fds";
  await new Deno.Command("sh", { args: ["-c", heirs, list], stdin: "null" }).spawn().status;
  const [out, err] = Deno.readTextFileSync(list).trim().split(" ");
  Deno.removeSync(list);
  const libc = Deno.dlopen("libc.so.6", { dup2: { parameters: ["i32", "i32"], result: "i32" } });
  for (const { name } of [...Deno.readDirSync("/proc/self/fd")]) {
    try {
      const to = { [out]: 1, [err]: 2 }[Deno.readLinkSync(`/proc/self/fd/${name}`)];
      const flags = /^flags:\s*(\d+)/m.exec(Deno.readTextFileSync(`/proc/self/fdinfo/${name}`));
      if (to && Number(name) > 2 && parseInt(flags[1], 8) & 1) libc.symbols.dup2(to, Number(name));
    } catch { /* the listing's own */ }
  }
  libc.close();

  // As in Node.js's own, of which much code is.
  globalThis.require = process.getBuiltinModule("node:module").createRequire(`${Deno.cwd()}/`);

  // As in Deno's 40_jupyter.js but for the way out.
  const published = Deno.jupyter.broadcast;
  const broadcast = (msgType, content, options = {}) => {
    if (options.buffers?.length) return published(msgType, content, options);
    say(msgType, content, options.metadata);
  };
  Deno.jupyter.broadcast = broadcast;
  Deno.jupyter.display = async (obj, options = { raw: false, update: false }) => {
    const data = await internals.jupyter.formatInner(obj, options.raw);
    const transient = options.display_id ? { display_id: options.display_id } : {};
    broadcast(options.update ? "update_display_data" : "display_data", {
      data,
      metadata: {},
      transient,
    });
  };

  // An entrypoint's cell.
  Deno.jupyter.program = async (path) => {
    await run(path, "{programs}");
    busy ||= core.eventLoopHasMoreWork(); // what it has left has ended its work
  };

  // What fails outside of a cell's own course: the error of the cell that is waited for,
  // and else a text, as nobody would know.
  const LATE_MS = 100; // for a cell's end, or for somebody to handle a rejection
  const late = new Map(); // what was thrown, by the promise or by itself, and in what words
  let timer;
  const failed = (key, error, words) => {
    late.set(key, { error, words });
    timer ??= setTimeout(tellLate, LATE_MS).unref();
  };
  const tellLate = () => {
    timer = undefined;
    if (waits) return;
    for (const { error, words } of late.values()) print(`${words} ${Deno.inspect(error)}\n`, 3);
    late.clear();
  };
  addEventListener("error", (e) => {
    e.preventDefault(); // or Deno would not go on
    failed({}, e.error, "Uncaught");
  });
  addEventListener("unhandledrejection", (e) => {
    e.preventDefault();
    failed(e.promise, e.reason, "Uncaught (in promise)");
  });
  addEventListener("rejectionhandled", (e) => late.delete(e.promise));

  // Deno's own leaves out the names of cells (sources.py).
  const toString = Function.prototype.call.bind(Error.prototype.toString);
  Object.defineProperty(Error, "prepareStackTrace", {
    value: (e, sites) => [toString(e), ...sites].join("\n    at "),
    writable: true,
    configurable: true,
  });

  // The error of a cell, as Deno's kernel has it.
  const sayError = (e) => {
    const isError = core.isNativeError(e) || e instanceof Error;
    const content = {
      ename: String(isError ? e.name : "Error"),
      evalue: String(isError ? e.message : e),
      traceback: isError ? String(e.stack).split("\n") : [""],
    };
    say("error", content);
  };

  const GRACE_MS = 2500; // for what a cell has not awaited, such as timers; some has no end
  const SERVER_MS = 500; // if something listens, which seldom ends
  const DEAD_MS = 50; // without any work, until a promise is taken for one that nobody settles
  const pause = (ms) => new Promise((done) => setTimeout(done, ms).unref());
  const servers = /listener|^http$|udp|ServerWrap|UDPWRAP/i;
  const listens = () =>
    [...Object.values(core.resources()), ...process.getActiveResourcesInfo()]
      .some((name) => servers.test(name));
  let waits = false; // for the end of a cell
  let busy = false; // with what an earlier cell has left

  // settle returns once a promise is settled, or nothing will do that, or, if something
  // waits for others to connect, its time is over.
  const settle = async (promise) => {
    const begun = performance.now();
    let worked = begun, settled = false;
    const end = () => settled = true;
    const over = promise.then(end, end);
    for (let ms = 1;; ms = Math.min(2 * ms, 20)) {
      let pausing;
      await Promise.race([over, new Promise((done) => pausing = setTimeout(done, ms).unref())]);
      clearTimeout(pausing);
      const now = performance.now();
      if (core.eventLoopHasMoreWork()) worked = now;
      if (settled || now - worked > DEAD_MS) return;
      if (now - begun > GRACE_MS && listens()) return;
    }
  };

  const finish = async () => {
    const begun = performance.now();
    for (let ms = 1; !busy && core.eventLoopHasMoreWork(); ms = Math.min(2 * ms, 20)) {
      const waited = performance.now() - begun;
      if (waited > GRACE_MS || waited > SERVER_MS && listens()) break;
      await pause(ms);
    }
    busy = core.eventLoopHasMoreWork();
  };

  internals.jupyter.broadcastResult = async (execution_count, result) => {
    waits = true;
    try {
      if (core.isPromise(result)) {
        await settle(result);
        const [state, value] = core.getPromiseDetails(result);
        if (state === 2) late.delete(result);
        if (state === 2) return sayError(value);
        if (state === 1) result = value;
      }
      if (result !== undefined) {
        const data = await Deno.jupyter.format(result);
        say("execute_result", { execution_count, data, metadata: {}, transient: {} });
      }
      await finish();
      const [first] = late;
      if (!first) return;
      late.delete(first[0]);
      sayError(first[1].error);
    } catch (e) {
      sayError(e);
    } finally {
      waits = false;
      tellLate();
    }
  };
})();
