// The self-contained report: its panels one below the other with a list of contents beside them.
import { useEffect } from "preact/hooks";
import { SCHEMA_VERSION } from "../data/load";
import type { Report } from "../data/report";
import { panelsFor } from "../panels";
import { Section, ThemeButton } from "./parts";

function inputLine(report: Report): string {
  const files = report.input.files;
  const ranks = new Set(files.map((file) => file.rank).filter((rank) => rank != null)).size;
  const counted = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const paths = new Set(files.map((file) => file.path)).size; // one file can hold several ranks
  return files.length === 0 ? "no input" : `${counted(paths, "file")} · ${counted(ranks, "rank")}`;
}

/** In a frame whose page stands in its srcdoc (Jupyter, VS Code) "#ID" is a place on the page around it: here it is on this one. */
function useLinksInFrames(): void {
  useEffect(() => {
    if (location.protocol !== "about:") return;
    const clicked = (event: MouseEvent) => {
      const id = (event.target as HTMLElement).closest?.("a[href^='#']")?.getAttribute("href")?.slice(1);
      if (id === undefined) return;
      event.preventDefault();
      document.getElementById(id)?.scrollIntoView();
    };
    addEventListener("click", clicked);
    return () => removeEventListener("click", clicked);
  }, []);
}

export function ReportPage(props: { report: Report }) {
  const { report } = props;
  useLinksInFrames();
  const panels = panelsFor(report);
  return (
    <>
      <a class="skip" href="#main">
        skip to the report
      </a>
      <header>
        <h1>stepscope</h1>
        <p class="path" title={report.input.path}>
          {report.input.path}
        </p>
        <p class="sum">{inputLine(report)}</p>
        <ThemeButton />
      </header>
      <div class="columns">
        <nav aria-label="contents">
          <ul>
            {panels.map((panel) => (
              <li>
                <a href={`#${panel.id}`}>{panel.label}</a>
              </li>
            ))}
          </ul>
        </nav>
        <main id="main">
          {report.schema_version > SCHEMA_VERSION && (
            <p class="banner" role="alert">
              This report has schema_version {report.schema_version}, the page knows {SCHEMA_VERSION}: what is new in it is left
              out. Make the page with the stepscope that made the report, or a newer one.
            </p>
          )}
          {panels.map((panel) => (
            <Section key={panel.id} panel={panel} report={report} />
          ))}
        </main>
      </div>
    </>
  );
}
