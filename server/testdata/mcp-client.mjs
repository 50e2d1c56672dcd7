// What a client in TypeScript does with notebox over MCP. Its one argument is the URL.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(new StreamableHTTPClientTransport(new URL(process.argv[2])));

const { tools } = await client.listTools();
const names = tools.map((t) => t.name);
for (const name of ["run_python", "create_session", "list_files", "read_file", "write_file"]) assert(names.includes(name), name);

let told = 0;
const ran = await client.callTool({ name: "run_python", arguments: { code: "print(1)" } }, undefined, { onprogress: () => told++ });
assert.equal(ran.structuredContent.status, "ok"); // the client has held it against the schema
assert.equal(ran.isError ?? false, false);
assert(told > 0, "progress");

const opened = await client.callTool({ name: "create_session", arguments: {} });
const session = opened.structuredContent.id;
await client.callTool({ name: "write_file", arguments: { session, path: "a.txt", content: "hello" } });
const read = await client.callTool({ name: "read_file", arguments: { session, path: "a.txt" } });
assert.equal(read.content[0].text, "hello");
const missing = await client.callTool({ name: "read_file", arguments: { session, path: "b.txt" } });
assert.equal(missing.isError, true);

await client.close();
console.log("all is well");
