import type { Completion } from "@codemirror/autocomplete";
import type { Language } from "./reply";

// The names that a module or class has, from Python's image: members/python.json, which is
// loaded when the first "." is typed.

interface Members {
  members: Record<string, string>;
  versions: Record<string, string>;
}

let loading: Promise<Members> | undefined;

function load(): Promise<Members> {
  loading ??= import("./members/python.json").then((module) => module.default);
  loading.catch(() => (loading = undefined)); // the next "." asks again
  return loading;
}

/** What people call modules and objects, where a cell does not say what a name is. */
const customary: Record<string, string> = {
  ax: "matplotlib.axes.Axes",
  df: "pandas.DataFrame",
  dt: "datetime",
  fig: "matplotlib.figure.Figure",
  go: "plotly.graph_objects",
  np: "numpy",
  nx: "networkx",
  pa: "pyarrow",
  pd: "pandas",
  plt: "matplotlib.pyplot",
  px: "plotly.express",
  sm: "statsmodels.api",
  smf: "statsmodels.formula.api",
  sns: "seaborn",
  sp: "sympy",
  xr: "xarray",
};

/** imported returns what the imports of a code call things: names, and what each is. */
export function imported(code: string): Map<string, string> {
  const names = new Map<string, string>();
  const parts = (list: string) => list.split(",").map((part) => /^\s*([\w.]+)(?:\s+as\s+(\w+))?\s*$/.exec(part));
  for (const line of code.replace(/\(([^()]*)\)/g, (_, inner: string) => inner.replace(/\s+/g, " ")).split(/[\n;]/)) {
    const found = /^\s*(?:from\s+([\w.]+)\s+)?import\s+([^#]+)/.exec(line);
    if (!found?.[2]) continue;
    for (const part of parts(found[2])) {
      if (!part?.[1]) continue;
      const whole = found[1] ? `${found[1]}.${part[1]}` : part[1];
      if (part[2]) names.set(part[2], whole);
      else if (found[1]) names.set(part[1], whole);
      else names.set(part[1].split(".")[0] ?? "", part[1].split(".")[0] ?? "");
    }
  }
  return names;
}

/** membersOf returns those of what is before a ".", such as "np.linalg", in a code. */
export async function membersOf(path: string, code: string, packages: Language["packages"], ownName: (name: string) => string): Promise<Completion[]> {
  const { members, versions } = await load();
  const [first = "", ...others] = path.split(".");
  const whole = [imported(code).get(first) ?? customary[first] ?? first, ...others].join(".");
  const root = whole.split(".")[0] ?? "";
  const version = versions[root];
  // The image may be another than the one that the names are of.
  if (version !== undefined && !packages.some((p) => ownName(p.name) === root && p.version === version)) return [];
  if (!Object.hasOwn(members, whole)) return [];
  return (members[whole] ?? "").split(" ").map((label) => ({ label, type: "property" }));
}
