// The state of the served page, in the fragment of its address: `#/VIEW?run=r1&from=…`. Whoever is sent the address sees
// the same; back and forward go from state to state.

export interface Route {
  view: string;
  params: Record<string, string>; // those that are not set are left out
}

export function parseRoute(fragment: string): Route | null {
  const match = /^#\/([^?]*)(?:\?(.*))?$/s.exec(fragment);
  if (match === null) return null;
  const params: Record<string, string> = {};
  for (const [name, value] of new URLSearchParams(match[2] ?? "")) params[name] = value;
  return { view: match[1]!, params };
}

export function formatRoute(route: Route): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(route.params)) if (value !== "") params.set(name, value);
  const text = params.toString().replace(/%2C/g, ",").replace(/%3A/g, ":");
  return `#/${route.view}${text === "" ? "" : `?${text}`}`;
}

/** [0,1,2,5] ↔ "0-2,5": which lanes and ranks are folded stays short with a thousand of them. */
export function formatNumbers(numbers: Iterable<number>): string {
  const sorted = [...new Set(numbers)].sort((a, b) => a - b);
  const parts: string[] = [];
  for (let i = 0; i < sorted.length; ) {
    let last = i;
    while (sorted[last + 1] === sorted[last]! + 1) last++;
    parts.push(last === i ? String(sorted[i]) : `${sorted[i]}-${sorted[last]}`);
    i = last + 1;
  }
  return parts.join(",");
}

const MOST_NUMBERS = 100_000; // an address is not ours to trust

export function parseNumbers(text: string | undefined): number[] {
  const numbers: number[] = [];
  for (const part of (text ?? "").split(",")) {
    const match = /^(\d{1,9})(?:-(\d{1,9}))?$/.exec(part);
    if (match === null) continue;
    const last = Number(match[2] ?? match[1]);
    for (let n = Number(match[1]); n <= last && numbers.length < MOST_NUMBERS; n++) numbers.push(n);
  }
  return numbers;
}

/** "12-345" as a stretch of time; null for anything else. */
export function parseStretch(text: string | undefined): { from: number; to: number } | null {
  const match = /^(\d{1,16})-(\d{1,16})$/.exec(text ?? "");
  if (match === null || Number(match[2]) <= Number(match[1])) return null;
  return { from: Number(match[1]), to: Number(match[2]) };
}
