// What both modes of the page share: a guard around each part, the button for light and dark, a section for a panel.
import { Component } from "preact";
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import type { Report } from "../data/report";
import type { Panel } from "../draw/panel";

/** A part that fails is replaced by a sentence; the others stay. */
export class Guard extends Component<{ title: string; children: ComponentChildren }, { error: string | null }> {
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

export function ThemeButton() {
  const [theme, setTheme] = useState<Theme>((document.documentElement.dataset.theme as Theme | undefined) ?? systemTheme());
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

/** `untitled`: the page says the title. */
export function Section(props: { panel: Panel; report: Report; untitled?: boolean }) {
  const { panel, report } = props;
  const View = panel.view;
  return (
    <section id={panel.id} aria-label={panel.title} data-panel={panel.id}>
      {!props.untitled && <h2>{panel.title}</h2>}
      <Guard title={panel.title}>
        <View report={report} />
      </Guard>
    </section>
  );
}
