// What a reader has to know before any figure: files that are not of one job, and data that was lost.
import type { Report } from "../data/report";
import type { Panel } from "../draw/panel";

function Unrelated(props: { report: Report }) {
  const issue = props.report.issues.find(({ code }) => code === "unrelated_files");
  if (issue === undefined) return null;
  return (
    <p class="banner" role="alert">
      <b>One job?</b> {issue.sentence}. {issue.advice}
    </p>
  );
}

function Lost(props: { report: Report }) {
  const lost = props.report.issues.filter((issue) => issue.severity === "lost");
  if (lost.length === 0) return null;
  return (
    <p class="banner" role="alert">
      <b>Partial data.</b> {lost[0]!.sentence}
      {lost.length > 1 && ` And ${lost.length - 1} more.`} <a href="#quality">What was lost</a>
    </p>
  );
}

export const warnings: Panel = {
  id: "warnings",
  label: "Warnings",
  title: "Before you read on",
  shows: [],
  applies: (report) => report.issues.some((issue) => issue.severity === "lost" || issue.code === "unrelated_files"),
  view: ({ report }) => (
    <>
      <Unrelated report={report} />
      <Lost report={report} />
    </>
  ),
};
