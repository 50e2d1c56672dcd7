import { fields, formFields, type Wish } from "./request";

// The request of the page as other programs send it. TestTheSnippetsRun runs each.

export interface Snippet {
  name: string;
  text: string;
}

/** What a snippet is made of. */
interface Call {
  address: string;
  wish: Wish;
  files: string[]; // their names: they are in the folder in which it runs
  key: boolean; // whether the service wants one, which is in the variable NOTEBOX_KEY
}

export function snippets(base: string, wish: Wish, files: string[], key: boolean): Snippet[] {
  const call = { address: new URL("v1/execute", base).href, wish, files, key };
  return [
    { name: "curl", text: curl(call) },
    { name: "Python", text: python(call) },
    { name: "TypeScript", text: typescript(call) },
    { name: "Go", text: goLang(call) },
    { name: "Tool call", text: toolCall({ ...call, address: new URL("v1/tools/call", base).href }) },
  ];
}

const join = (parts: (string | false)[], joint: string) => parts.filter((part) => part !== false).join(joint);

const shell = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;
const shellKey = `-H "Authorization: Bearer $NOTEBOX_KEY"`;

/**
 * json is a value in JSON that is also source text of Python, TypeScript and Go. What an editor
 * may turn into something else, and Go refuses, is escaped.
 */
function json(value: unknown, indent?: number): string {
  return JSON.stringify(value, null, indent).replace(/[\x7f-\x9f\u2028\u2029\ufeff]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

function curl({ address, wish, files, key }: Call): string {
  const head = [`curl ${shell(address)}`, key && shellKey];
  if (files.length === 0) return join([...head, `--json ${shell(json(fields(wish)))}`], " \\\n  ");
  const all = Object.entries(formFields(wish)).map(([name, value]) => `--form-string ${shell(`${name}=${value}`)}`);
  return join([...head, ...all, ...files.map((file) => `-F ${shell(`files=@"${file.replace(/["\\]/g, "\\$&")}"`)}`)], " \\\n  ");
}

/** pythonValue writes a text with lines as Python people do, if nothing in it has to be escaped. */
function pythonValue(value: unknown, indent: string): string {
  if (typeof value === "boolean") return value ? "True" : "False";
  if (Array.isArray(value)) return `[\n${value.map((v) => `${indent}    ${pythonValue(v, indent + "    ")},\n`).join("")}${indent}]`;
  if (typeof value === "string" && value.includes("\n") && !value.includes('"""') && /^[^\\]*[^\\"]$/.test(value) && json(value) === JSON.stringify(value)) {
    if (!/[\x00-\x08\x0b-\x1f]/.test(value)) return `"""${value}"""`;
  }
  return json(value);
}

function python({ address, wish, files, key }: Call): string {
  const form = files.length > 0;
  const { code, ...others } = fields(wish);
  const all = form && code !== undefined ? { cells: [code], ...others } : fields(wish);
  const inner = "        ";
  const member = ([name, value]: [string, unknown]) => {
    const text = pythonValue(form && typeof value === "boolean" ? String(value) : value, inner);
    return `${inner}"${name}": ${form && typeof value === "object" ? `json.dumps(${text})` : text},`;
  };
  return join(
    [
      form && "import json",
      key && "import os",
      (form || key) && "",
      `import requests\n\nreply = requests.post(\n    ${json(address)},`,
      `    ${form ? "data" : "json"}={\n${Object.entries(all).map(member).join("\n")}\n    },`,
      form && `    files=[\n${files.map((file) => `${inner}("files", open(${json(file)}, "rb")),\n`).join("")}    ],`,
      key && `    headers={"Authorization": "Bearer " + os.environ["NOTEBOX_KEY"]},`,
      `)\nreply.raise_for_status()\nprint(reply.json()["text"], end="")`,
    ],
    "\n",
  );
}

function typescript({ address, wish, files, key }: Call): string {
  const authorization = "Authorization: `Bearer ${process.env.NOTEBOX_KEY}`";
  const end = `if (!answer.ok) throw new Error(await answer.text());\nconst reply = await answer.json();\nprocess.stdout.write(reply.text);\n`;
  if (files.length === 0) {
    return `const answer = await fetch(${json(address)}, {
  method: "POST",
  headers: { "Content-Type": "application/json"${key ? `, ${authorization}` : ""} },
  body: JSON.stringify(${json(fields(wish), 2).replaceAll("\n", "\n  ")}),
});
${end}export {}; // it is a module
`;
  }
  return join(
    [
      `import { openAsBlob } from "node:fs";\n\nconst form = new FormData();`,
      ...Object.entries(formFields(wish)).map(([name, value]) => `form.set("${name}", ${json(value)});`),
      ...files.map((file) => `form.append("files", await openAsBlob(${json(file)}), ${json(file)});`),
      `const answer = await fetch(${json(address)}, { method: "POST", body: form${key ? `, headers: { ${authorization} }` : ""} });`,
      end,
    ],
    "\n",
  );
}

/** goText is a raw string, if it can be one. */
function goText(text: string): string {
  return /[`\x00-\x08\x0b-\x1f\ufeff]/.test(text) ? json(text) : `\`${text}\``;
}

function goLang({ address, wish, files, key }: Call): string {
  const form = files.length > 0;
  const imports = [form ? "bytes" : "strings", "encoding/json", "fmt", ...(form ? ["io", "mime/multipart"] : []), "net/http", ...(form || key ? ["os"] : [])].sort();
  const fill = `	var body bytes.Buffer
	form := multipart.NewWriter(&body)
${Object.entries(formFields(wish)).map(([name, value]) => `	form.WriteField("${name}", ${goText(value)})\n`).join("")}	for _, name := range []string{${files.map((file) => json(file)).join(", ")}} {
		file, err := os.Open(name)
		if err != nil {
			panic(err)
		}
		part, err := form.CreateFormFile("files", name)
		if err != nil {
			panic(err)
		}
		if _, err := io.Copy(part, file); err != nil {
			panic(err)
		}
		file.Close()
	}
	form.Close()`;
  return `package main

import (
${imports.map((name) => `\t"${name}"`).join("\n")}
)

func main() {
${form ? fill : `	body := strings.NewReader(${goText(json(fields(wish), 2))})`}
	request, err := http.NewRequest("POST", ${json(address)}, ${form ? "&body" : "body"})
	if err != nil {
		panic(err)
	}
	request.Header.Set("Content-Type", ${form ? "form.FormDataContentType()" : `"application/json"`})
${key ? `	request.Header.Set("Authorization", "Bearer "+os.Getenv("NOTEBOX_KEY"))\n` : ""}	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		panic(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		panic(answer.Status)
	}
	var reply struct{ Status, Text string }
	if err := json.NewDecoder(answer.Body).Decode(&reply); err != nil {
		panic(err)
	}
	fmt.Print(reply.Text)
}
`;
}

/** toolCall is a call as a model emits it, in the notation of OpenAI's Chat Completions, and where it goes. */
function toolCall({ address, wish, files, key }: Call): string {
  const args: Record<string, unknown> = { code: wish.cells.join("\n\n") };
  if (!wish.session) args["language"] = wish.language;
  if (!wish.session && wish.dependencies.length > 0) args["dependencies"] = wish.dependencies;
  const body: Record<string, unknown> = { call: { id: "call_1", type: "function", function: { name: "execute_python", arguments: json(args) } } };
  if (wish.session) body["session"] = wish.session;
  if (!wish.session && wish.network) body["network"] = true;
  if (wish.timeout !== undefined) body["timeout"] = wish.timeout;
  const send = (content: string) => join([`curl ${shell(address)}`, key && shellKey, `--json ${content}`], " \\\n  ");
  if (files.length === 0) return send(shell(json(body, 2)));
  // A file is written between what is before it and what is after it.
  const parts = files.map((name, i) => `  printf %s ${shell(`${i > 0 ? `"}, ` : ""}{"name": ${json(name)}, "content": "`)}\n  base64 <${shell(name)} | tr -d '\\n'\n`);
  const open = json(body, 2).replace(/\n}$/, `,\n  "files": [`);
  return `{\n  printf %s ${shell(open)}\n${parts.join("")}  printf %s '"}]}'\n} | ${send("@-")}`;
}
