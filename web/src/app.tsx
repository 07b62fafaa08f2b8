// The page, in one of two modes: with a report in it, it shows that and asks nobody; without, it is what “stepscope view”
// serves and asks its server.
import { render } from "preact";
import { ReportPage } from "./app/report_page";
import { Served } from "./app/served";
import { carriesReport, loadReport } from "./data/load";

function start() {
  const root = document.getElementById("app");
  if (root === null) return;
  root.textContent = "";
  if (!carriesReport(document)) {
    render(<Served />, root);
    return;
  }
  try {
    render(<ReportPage report={loadReport(document)} />, root);
  } catch (error) {
    root.textContent = `This report cannot be shown: ${error instanceof Error ? error.message : String(error)}`;
  }
}

start();
