// Any part of an answer that no panel of its own shows: figures, charts, tables and notes as they come. A new analysis is on the page the day it exists.
import type { Answer, Report } from "../data/report";
import { Rest } from "../draw/answer";
import { words } from "../draw/format";
import type { Panel } from "../draw/panel";

export function genericPanel(name: string, answer: Answer): Panel {
  return {
    id: name,
    label: capital(words(name)),
    title: answer.summary || words(name),
    shows: [name],
    applies: () => true,
    view: ({ report }: { report: Report }) => <Rest name={name} answer={report.answers[name] ?? answer} />,
  };
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
