// The page: reads the report that it carries, draws its panels one below the other with a list of contents beside
// them. A panel that fails is replaced by a sentence; the others stay.
import { Component, render } from "preact";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { SCHEMA_VERSION, loadReport } from "./data/load";
import type { Report } from "./data/report";
import { panelsFor } from "./panels";
import type { Panel } from "./draw/panel";

class Guard extends Component<{ title: string; children: ComponentChildren }, { error: string | null }> {
  override state: { error: string | null } = { error: null };
  static override getDerivedStateFromError(error: unknown) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
  override render() {
    if (this.state.error === null) return this.props.children;
    return (
      <p class="failed" role="alert">
        This part of the page could not be drawn ({this.state.error}). Its figures are in the output of “stepscope report
        PATH --json”.
      </p>
    );
  }
}

type Theme = "light" | "dark";

function systemTheme(): Theme {
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

function ThemeButton() {
  const [theme, setTheme] = useState<Theme>(systemTheme());
  const other: Theme = theme === "dark" ? "light" : "dark";
  const change = () => {
    document.documentElement.dataset.theme = other;
    setTheme(other);
  };
  return (
    <button type="button" class="theme" onClick={change}>
      {other} page
    </button>
  );
}

function inputLine(report: Report): string {
  const files = report.input.files;
  const ranks = new Set(files.map((file) => file.rank).filter((rank) => rank != null)).size;
  const counted = (count: number, word: string) => `${count} ${word}${count === 1 ? "" : "s"}`;
  const paths = new Set(files.map((file) => file.path)).size; // one file can hold several ranks
  return files.length === 0 ? "no input" : `${counted(paths, "file")} · ${counted(ranks, "rank")}`;
}

function Section(props: { panel: Panel; report: Report }) {
  const { panel, report } = props;
  const View = panel.view;
  return (
    <section id={panel.id} aria-labelledby={`${panel.id}-title`} data-panel={panel.id}>
      <h2 id={`${panel.id}-title`}>{panel.title}</h2>
      <Guard title={panel.title}>
        <View report={report} />
      </Guard>
    </section>
  );
}

export function Page(props: { report: Report }) {
  const { report } = props;
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

function start() {
  const root = document.getElementById("app");
  if (root === null) return;
  root.textContent = "";
  try {
    render(<Page report={loadReport(document)} />, root);
  } catch (error) {
    root.textContent = `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  }
}

start();
