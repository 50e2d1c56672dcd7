/** ownQuery is the part of a shared run's query that opens it. */
export function ownQuery(query: string): string {
  const all = new URLSearchParams(query);
  return new URLSearchParams(["share", "expires", "signature"].map((name) => [name, all.get(name) ?? ""])).toString();
}
