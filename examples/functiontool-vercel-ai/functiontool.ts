// A model that runs Python: notebox as a tool() of the Vercel AI SDK, with any
// endpoint that speaks Chat Completions.
//
//	npm install ai@7 @ai-sdk/openai-compatible@3 tsx@4
//	OPENAI_API_KEY=… npx tsx functiontool.ts "What is the sum of the first 100 primes?"
//
// OPENAI_BASE_URL, OPENAI_MODEL, NOTEBOX_URL and NOTEBOX_API_KEY say where things are.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, jsonSchema, stepCountIs, tool } from "ai";

/** Calls notebox's API: a GET, or a POST of JSON. */
async function notebox(path: string, body?: unknown) {
  const key = process.env.NOTEBOX_API_KEY;
  const response = await fetch((process.env.NOTEBOX_URL ?? "http://127.0.0.1:8080") + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { "Content-Type": "application/json", ...(key && { Authorization: `Bearer ${key}` }) },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`notebox: ${response.status}: ${await response.text()}`);
  return (await response.json()) as any;
}

/** The tool, with notebox's own description of what is installed and allowed. */
async function pythonTool() {
  const { description, parameters } = (await notebox("/v1/tools?notation=responses")).tools.responses[0];
  return tool({
    description,
    inputSchema: jsonSchema<{ code: string; language?: string; timeout?: number }>(parameters),
    execute: async (input, { toolCallId }) => {
      const call = { type: "function_call", call_id: toolCallId, name: "execute_python", arguments: JSON.stringify(input) };
      return (await notebox("/v1/tools/call", { call })).message.output as string;
    },
  });
}

/** Has the model answer a question, and runs what it asks for. */
async function ask(question: string): Promise<string> {
  const provider = createOpenAICompatible({
    name: "model",
    baseURL: process.env.OPENAI_BASE_URL ?? "https://api.openai.com/v1",
    apiKey: process.env.OPENAI_API_KEY,
  });
  const { text } = await generateText({
    model: provider(process.env.OPENAI_MODEL ?? "gpt-5.2"),
    prompt: question,
    tools: { execute_python: await pythonTool() },
    stopWhen: stepCountIs(10),
  });
  return text;
}

ask(process.argv.slice(2).join(" ")).then(console.log);
