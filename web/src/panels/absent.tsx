// Answers that know nothing of this recording, each with the reason: what to record to get them.
import type { Answer, Report } from "../data/report";
import { words } from "../draw/format";
import type { Panel } from "../draw/panel";

function reasons(answer: Answer): string[] {
  const said = answer.notes.length > 0 ? answer.notes : Object.values(answer.scalars).map((scalar) => scalar.meaning);
  return [...new Set(said)];
}

export function absentPanel(answers: [string, Answer][], id = "absent"): Panel {
  return {
    id,
    label: "Not recorded",
    title: "What this recording does not tell",
    shows: [],
    applies: () => answers.length > 0,
    view: (_: { report: Report }) => (
      <dl class="absent">
        {answers.map(([name, answer]) => (
          <>
            <dt>
              {words(name)}: {answer.summary}
            </dt>
            {reasons(answer).map((reason) => (
              <dd>{reason}</dd>
            ))}
          </>
        ))}
      </dl>
    ),
  };
}
