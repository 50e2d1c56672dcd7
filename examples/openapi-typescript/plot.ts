// A plot by types that openapi-typescript made of notebox's OpenAPI documents: of the native
// API, and of the calls that Dify has. In this folder:
//
//	npm install openapi-typescript@7.13.0 openapi-fetch@0.17.0 typescript@5.9.3 @types/node@20 tsx@4
//	npx openapi-typescript ${NOTEBOX_URL:-http://127.0.0.1:8080}/openapi.json -o native.ts
//	npx openapi-typescript ${NOTEBOX_URL:-http://127.0.0.1:8080}/dify/openapi.json -o dify.ts
//	npx tsc --noEmit --strict --target es2022 --module preserve --types node plot.ts
//	npx tsx plot.ts
//
// NOTEBOX_URL and NOTEBOX_API_KEY say where notebox is.
import createClient from "openapi-fetch";
import type { paths as Dify } from "./dify";
import type { paths as Native, components } from "./native";

const options = {
  baseUrl: process.env.NOTEBOX_URL ?? "http://127.0.0.1:8080",
  headers: process.env.NOTEBOX_API_KEY ? { Authorization: `Bearer ${process.env.NOTEBOX_API_KEY}` } : {},
};
const native = createClient<Native>(options);
const dify = createClient<Dify>(options);

/** Runs what a request says by the native API. */
async function run(body: components["schemas"]["Request"]) {
  const { data, error } = await native.POST("/v1/execute", { body });
  if (!data || typeof data === "string" || data.status !== "ok") throw new Error(`the run failed: ${JSON.stringify(error ?? data)}`);
  return data;
}

/** Sends code with a file, and returns the plot's name and size. */
async function plot(): Promise<string> {
  const code = `
import matplotlib.pyplot as plt, pandas as pd
pd.read_csv("rides.csv").plot(x="day", y="rides")
plt.show()
`;
  const { images } = await run({ code, files: [{ name: "rides.csv", text: "day,rides\n1,120\n2,150\n3,90\n" }], timeout: 60 });
  return `${images[0].name}, ${images[0].width} x ${images[0].height}`;
}

/** Sends a notebook, and returns what it printed. */
async function notebook(): Promise<string> {
  const book = { nbformat: 4, cells: [{ cell_type: "code", source: "print(6 * 7)" }] };
  return (await run({ notebook: book })).text.trim();
}

/** Draws by the calls that Dify has. */
async function plotInSandbox(): Promise<string> {
  const sandbox = await dify.POST("/create_sandbox", { body: {} });
  if (!sandbox.data) throw new Error(`there is no sandbox: ${JSON.stringify(sandbox.error)}`);
  const { sandbox_id } = sandbox.data;
  const code = "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()";
  const { data, error } = await dify.POST("/run_code", { body: { sandbox_id, code } });
  await dify.POST("/stop_sandbox", { body: { sandbox_id } });
  if (!data?.images || data.error) throw new Error(`the run failed: ${JSON.stringify(error ?? data)}`);
  return data.images[0].name;
}

async function main() {
  console.log("native:", await plot());
  console.log("notebook:", await notebook());
  console.log("dify:", await plotInSandbox());
}

main();
