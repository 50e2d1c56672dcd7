// A model that runs Python: notebox as the function tool of a chat, with OpenAI's
// official client. Any endpoint that speaks Chat Completions will do.
//
//	npm install openai@7 tsx@4
//	OPENAI_API_KEY=… npx tsx functiontool.ts "What is the sum of the first 100 primes?"
//
// OPENAI_BASE_URL, OPENAI_MODEL, NOTEBOX_URL and NOTEBOX_API_KEY say where things are.
import OpenAI from "openai";

const maxSteps = 10; // answers of the model to one question

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

/** Has the model answer a question, and runs what it asks for. */
async function ask(question: string): Promise<string | null> {
  const client = new OpenAI(); // reads OPENAI_API_KEY and OPENAI_BASE_URL
  const tools: OpenAI.ChatCompletionTool[] = (await notebox("/v1/tools?notation=chat_completions")).tools.chat_completions;
  const messages: OpenAI.ChatCompletionMessageParam[] = [{ role: "user", content: question }];
  for (let step = 0; step < maxSteps; step++) {
    const completion = await client.chat.completions.create({ model: process.env.OPENAI_MODEL ?? "gpt-5.2", messages, tools });
    const message = completion.choices[0].message;
    if (!message.tool_calls?.length) return message.content;
    messages.push(message);
    for (const call of message.tool_calls) {
      messages.push((await notebox("/v1/tools/call", { call })).message);
    }
  }
  throw new Error(`no answer after ${maxSteps} steps`);
}

ask(process.argv.slice(2).join(" ")).then(console.log);
