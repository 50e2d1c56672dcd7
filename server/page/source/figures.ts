// Figures as people read them.

export function bytes(n: number): string {
  if (n < 1000) return `${n} B`;
  for (const unit of ["kB", "MB", "GB"]) {
    n /= 1000;
    if (n < 999.5 || unit === "GB") return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${unit}`;
  }
  return "";
}

export function seconds(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : `${Math.floor(ms / 60_000)} min ${Math.round((ms % 60_000) / 1000)} s`;
}

/** printable is a file's name as it may stand in the page: what turns the direction of writing is shown as "_". */
export function printable(name: string): string {
  return name.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "_").slice(0, 300);
}
