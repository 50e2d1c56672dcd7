// The conformance suite imports globSync of fs, which Node.js has since 22, for a command
// that no test calls; Debian 13 has 20. This gives the import something to find.
import { register } from "node:module";

const fs = `export * from "node:fs"; export { default } from "node:fs";
export function globSync() { throw new Error("fs.globSync is not there"); }`;
const hooks = `export async function resolve(specifier, context, next) {
  if (specifier === "fs" && context.parentURL?.includes("/@modelcontextprotocol/conformance/")) {
    return { url: ${JSON.stringify("data:text/javascript," + encodeURIComponent(fs))}, shortCircuit: true };
  }
  return next(specifier, context);
}`;
register("data:text/javascript," + encodeURIComponent(hooks));
