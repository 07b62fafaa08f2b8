// Reads the report, which the page carries in <script type="application/json" id="report-data">: a page that does never
// asks the network, what is not in the file does not exist. The served page carries none and asks server.ts.
import type { Answer, Report } from "./report";

/** Newest format this page was written for; a newer one is shown with a warning, as far as it is understood. */
export const SCHEMA_VERSION = 1;

type Reviver = (this: unknown, key: string, value: unknown, context?: { source?: string }) => unknown;

// Integers that a double cannot hold become bigint, where the browser tells the digits (all since spring 2025).
const exactIntegers: Reviver = (_key, value, context) => {
  if (typeof value !== "number" || Number.isSafeInteger(value)) return value;
  const digits = context?.source;
  return digits !== undefined && /^-?\d+$/.test(digits) ? BigInt(digits) : value;
};

/** JSON in which no digit of a long integer is lost. */
export function parseExact(text: string): unknown {
  const hasLongIntegers = /\d{16}/.test(text);
  return hasLongIntegers ? JSON.parse(text, exactIntegers as Parameters<typeof JSON.parse>[1]) : JSON.parse(text);
}

export function parseReport(text: string): Report {
  const raw = parseExact(text) as Partial<Report> | null;
  if (raw === null || typeof raw !== "object" || Array.isArray(raw)) throw new Error("the report is not a JSON object");
  return {
    schema_version: raw.schema_version ?? 0,
    stepscope: raw.stepscope ?? { version: "unknown" },
    input: { path: raw.input?.path ?? "", files: raw.input?.files ?? [] },
    issues: raw.issues ?? [],
    answers: Object.fromEntries(Object.entries(raw.answers ?? {}).map(([name, answer]) => [name, whole(answer)])),
    ...(Array.isArray(raw.findings_by_worth) ? { findings_by_worth: raw.findings_by_worth } : {}),
    failed: raw.failed ?? {},
  };
}

function whole(answer: Partial<Answer> | null): Answer {
  return {
    summary: answer?.summary ?? "",
    scalars: answer?.scalars ?? {},
    tables: answer?.tables ?? {},
    series: answer?.series ?? {},
    ...(answer?.bands ? { bands: answer.bands } : {}),
    findings: answer?.findings ?? [],
    notes: answer?.notes ?? [],
  };
}

export function loadReport(page: Document): Report {
  const element = page.getElementById("report-data");
  if (element === null) throw new Error("the page carries no report");
  return parseReport(element.textContent ?? "");
}

export function carriesReport(page: Document): boolean {
  return page.getElementById("report-data") !== null;
}
