// The first look: the few figures that say whether the run is healthy, and a banner where data is missing.
import type { Report } from "../data/report";
import { words } from "../draw/format";
import { Card, Notes } from "../draw/parts";
import type { Panel } from "../draw/panel";

function Banner(props: { report: Report }) {
  const lost = props.report.issues.filter((issue) => issue.severity === "lost");
  if (lost.length === 0) return null;
  return (
    <p class="banner" role="alert">
      <b>Partial data.</b> {lost[0]!.sentence}
      {lost.length > 1 && ` And ${lost.length - 1} more.`} <a href="#quality">What was lost</a>
    </p>
  );
}

function View(props: { report: Report }) {
  const overview = props.report.answers.overview;
  return (
    <>
      <Banner report={props.report} />
      {overview && (
        <div class="cards">
          {Object.entries(overview.scalars).map(([name, scalar]) => (
            <Card name={name} label={words(name)} scalar={scalar} />
          ))}
        </div>
      )}
      <Notes answer={overview} />
    </>
  );
}

export const health: Panel = {
  id: "overview",
  label: "Overview",
  title: "Is it healthy?",
  shows: ["overview"],
  applies: () => true,
  view: View,
};
