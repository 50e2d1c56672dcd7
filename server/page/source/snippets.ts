import { fields, type Wish } from "./request";

// The request of the page as other programs send it.

export interface Snippet {
  name: string;
  text: string;
}

export function snippets(base: string, wish: Wish, files: string[], keys: boolean): Snippet[] {
  const address = new URL("v1/execute", base).href;
  const all = fields(wish);
  return [
    { name: "curl", text: curl(address, all, files, keys) },
    { name: "Python", text: python(address, all, files, keys) },
    { name: "TypeScript", text: typescript(address, all, files, keys) },
    { name: "Go", text: goLang(address, all, files, keys) },
    { name: "Tool call", text: toolCall(new URL("v1/tools/call", base).href, wish, files, keys) },
  ];
}

type Fields = Record<string, unknown>;

const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
const field = (value: unknown) => (typeof value === "object" ? JSON.stringify(value) : String(value));
const lines = (parts: (string | false)[], joint: string) => parts.filter((part) => part !== false).join(joint);

function curl(address: string, all: Fields, files: string[], keys: boolean): string {
  const key = keys && `-H "Authorization: Bearer $NOTEBOX_KEY"`;
  if (files.length === 0) return lines([`curl ${address}`, key, `--json ${shell(JSON.stringify(all))}`], " \\\n  ");
  return lines(
    [`curl ${address}`, key, ...Object.entries(all).map(([name, value]) => `--form-string ${shell(`${name}=${field(value)}`)}`), ...files.map((file) => `-F ${shell(`files=@"${file.replace(/["\\]/g, "\\$&")}"`)}`)],
    " \\\n  ",
  );
}

function pythonValue(value: unknown, indent = ""): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[\n${value.map((v) => `${indent}    ${pythonValue(v, indent + "    ")},\n`).join("")}${indent}]`;
  if (typeof value === "string" && value.includes("\n") && !/\\|"""|"$/.test(value)) return `"""${value}"""`;
  return JSON.stringify(value);
}

function python(address: string, all: Fields, files: string[], keys: boolean): string {
  const form = files.length > 0;
  const members = Object.entries(all).map(([name, value]) => `    "${name}": ${form && typeof value === "object" ? `json.dumps(${pythonValue(value, "    ")})` : pythonValue(value, "    ")},`);
  return lines(
    [
      lines([form && "import json", keys && "import os", (form || keys) && "", "import requests", ""], "\n"),
      `reply = requests.post(\n    "${address}",`,
      `    ${form ? "data" : "json"}={\n${members.join("\n").replace(/^ {4}/gm, "        ")}\n    },`,
      form && `    files=[${files.map((file) => `("files", open(${JSON.stringify(file)}, "rb"))`).join(", ")}],`,
      keys && `    headers={"Authorization": "Bearer " + os.environ["NOTEBOX_KEY"]},`,
      `)\nreply.raise_for_status()\nprint(reply.json()["text"])`,
    ],
    "\n",
  );
}

function typescript(address: string, all: Fields, files: string[], keys: boolean): string {
  const key = "Authorization: `Bearer ${process.env.NOTEBOX_KEY}`";
  const body = JSON.stringify(all, null, 2).replaceAll("\n", "\n  ");
  if (files.length === 0) {
    return lines(
      [
        `const answer = await fetch("${address}", {\n  method: "POST",`,
        `  headers: { "Content-Type": "application/json"${keys ? `, ${key}` : ""} },`,
        `  body: JSON.stringify(${body}),\n});`,
        "const reply = await answer.json();\nconsole.log(reply.text);",
      ],
      "\n",
    );
  }
  return lines(
    [
      `import { openAsBlob } from "node:fs";\n\nconst form = new FormData();`,
      ...Object.entries(all).map(([name, value]) => `form.set("${name}", ${typeof value === "object" ? `JSON.stringify(${JSON.stringify(value)})` : JSON.stringify(String(value))});`),
      ...files.map((file) => `form.append("files", await openAsBlob(${JSON.stringify(file)}), ${JSON.stringify(file)});`),
      `const answer = await fetch("${address}", { method: "POST", body: form${keys ? `, headers: { ${key} }` : ""} });`,
      "const reply = await answer.json();\nconsole.log(reply.text);",
    ],
    "\n",
  );
}

function goLang(address: string, all: Fields, files: string[], keys: boolean): string {
  const form = files.length > 0;
  const quoted = (text: string) => (text.includes("`") ? JSON.stringify(text) : `\`${text}\``);
  const imports = [form ? "bytes" : "strings", "encoding/json", "fmt", ...(form ? ["io", "mime/multipart"] : []), "net/http", ...(form || keys ? ["os"] : [])].sort();
  const body = form
    ? lines(
        [
          "\tvar body bytes.Buffer\n\tform := multipart.NewWriter(&body)",
          ...Object.entries(all).map(([name, value]) => `\tform.WriteField("${name}", ${quoted(field(value))})`),
          `\tfor _, name := range []string{${files.map((file) => JSON.stringify(file)).join(", ")}} {\n\t\tpart, _ := form.CreateFormFile("files", name)\n\t\tfile, err := os.Open(name)\n\t\tif err != nil {\n\t\t\tpanic(err)\n\t\t}\n\t\tio.Copy(part, file)\n\t\tfile.Close()\n\t}\n\tform.Close()`,
        ],
        "\n",
      )
    : `\tbody := strings.NewReader(${quoted(JSON.stringify(all, null, 2))})`;
  return `package main

import (
${imports.map((name) => `\t"${name}"`).join("\n")}
)

func main() {
${body}
	request, err := http.NewRequest("POST", "${address}", ${form ? "&body" : "body"})
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", ${form ? "form.FormDataContentType()" : `"application/json"`})
${keys ? `\trequest.Header.Set("Authorization", "Bearer "+os.Getenv("NOTEBOX_KEY"))\n` : ""}	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	var reply struct{ Status, Text string }
	if err := json.NewDecoder(answer.Body).Decode(&reply); err != nil {
		panic(err)
	}
	fmt.Print(reply.Text)
}
`;
}

/** toolCall is a call as a model emits it, in the notation of OpenAI's Chat Completions, and where it goes. */
function toolCall(address: string, wish: Wish, files: string[], keys: boolean): string {
  const args: Fields = { code: wish.cells.join("\n\n") };
  if (!wish.session) args["language"] = wish.language;
  if (!wish.session && wish.dependencies.length > 0) args["dependencies"] = wish.dependencies;
  const body: Fields = { call: { id: "call_1", type: "function", function: { name: "execute_python", arguments: JSON.stringify(args) } } };
  if (wish.session) body["session"] = wish.session;
  if (!wish.session && wish.network) body["network"] = true;
  if (wish.timeout !== undefined) body["timeout"] = wish.timeout;
  if (files.length > 0) body["files"] = files.map((name) => ({ name, content: "<base64>" }));
  return lines([`curl ${address}`, keys && `-H "Authorization: Bearer $NOTEBOX_KEY"`, `--json ${shell(JSON.stringify(body, null, 2))}`], " \\\n  ");
}
