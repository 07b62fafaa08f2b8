// Data quality: what was odd, repaired or lost in the input, and the quality answer's own figures and tables.
import type { Issue, Report } from "../data/report";
import { DataTable } from "../draw/table";
import { grouped, words } from "../draw/format";
import { Figures, Notes } from "../draw/parts";
import type { Panel } from "../draw/panel";

const LABEL: Record<Issue["severity"], string> = { lost: "data lost", repaired: "repaired", info: "note" };
const ORDER: Issue["severity"][] = ["lost", "repaired", "info"];

function where(issue: Issue): string {
  const at = [
    issue.offset != null ? `byte ${grouped(issue.offset)}` : "",
    issue.event != null ? `event ${grouped(issue.event)}` : "",
  ].filter(Boolean);
  return [issue.file ?? "", at.join(", ")].filter(Boolean).join(", first at ");
}

function IssueList(props: { issues: Issue[] }) {
  if (props.issues.length === 0) return <p class="good">Nothing odd was found in the input.</p>;
  const sorted = ORDER.flatMap((severity) => props.issues.filter((issue) => issue.severity === severity));
  const others = props.issues.filter((issue) => !ORDER.includes(issue.severity));
  return (
    <ul class="issues">
      {[...sorted, ...others].map((issue) => (
        <li data-issue={issue.code} class={issue.severity}>
          <span class="severity">{LABEL[issue.severity] ?? issue.severity}</span>
          <div>
            <p>
              {issue.sentence}
              {issue.count > 1 && <b> ({grouped(issue.count)} times)</b>}
            </p>
            {issue.advice && <p class="advice">{issue.advice}</p>}
            {where(issue) && <p class="where">{where(issue)}</p>}
          </div>
        </li>
      ))}
    </ul>
  );
}

function View(props: { report: Report }) {
  const quality = props.report.answers.quality;
  const failed = Object.entries(props.report.failed);
  return (
    <>
      {failed.length > 0 && (
        <ul class="issues">
          {failed.map(([name, why]) => (
            <li class="lost" data-failed={name}>
              <span class="severity">no answer</span>
              <p>
                {words(name)}: {why}
              </p>
            </li>
          ))}
        </ul>
      )}
      <IssueList issues={props.report.issues} />
      {quality && (
        <>
          <Figures scalars={quality.scalars} />
          {Object.entries(quality.tables)
            .filter(([name, table]) => name !== "issues" && table.rows.length > 0)
            .map(([name, table]) => (
            <>
              <h3>{words(name)}</h3>
              <DataTable name={`quality.${name}`} table={table} source={`quality_${name}`} />
            </>
          ))}
          <Notes answer={quality} />
        </>
      )}
    </>
  );
}

export const issues: Panel = {
  id: "quality",
  label: "Data quality",
  title: "How good is the data?",
  shows: ["quality"],
  applies: () => true,
  view: View,
};
