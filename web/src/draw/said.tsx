// A sentence that tells what to do with a command, for a reader of the served page: what the command would show is a link
// where the page shows it too. The self-contained report has no such places, and the command stays.
import { useContext } from "preact/hooks";
import type { ComponentChild } from "preact";
import { PageLinks } from "./page_links";
import type { PageLinks as Links } from "./page_links";

const VALUE = String.raw`'[^']*'|[^\s'-][^\s']*`;
const COMMANDS = new RegExp(
  String.raw`(?:stepscope report (?:PATH )?)?--only ([a-z_]+(?:,[a-z_]+)*)|stepscope what-if(?: PATH)?((?: --[a-z-]+(?: (?:${VALUE}))?)*)`,
  "g",
);
const OPTION = new RegExp(String.raw`--([a-z-]+)(?: (${VALUE}))?`, "g");

/** Options of “stepscope what-if” as the page takes them, one a line. */
export function linesOf(options: string): string {
  return [...options.matchAll(OPTION)].map(([, name, value]) => (value === undefined ? name : `${name} ${value.replace(/^'(.*)'$/, "$1")}`)).join("\n");
}

function answersLinks(names: string[], links: Links): ComponentChild | null {
  const found = names.map((name) => links.answer?.(name) ?? null);
  if (found.some((one) => one === null)) return null;
  return found.map((one, i) => [i > 0 && ", ", <a href={one!.address}>{one!.label}</a>]);
}

function whatIfLink(options: string, links: Links): ComponentChild | null {
  if (!links.whatIf || options.includes("--topology")) return null; // the page takes no file
  const lines = linesOf(options);
  return <a href={links.whatIf(lines)}>What if{lines === "" ? "" : `: ${lines.split("\n").join(", ")}`}</a>;
}

export function Said(props: { text: string }) {
  const links = useContext(PageLinks);
  const { text } = props;
  const parts: ComponentChild[] = [];
  let from = 0;
  for (const match of text.matchAll(COMMANDS)) {
    const link = match[1] !== undefined ? answersLinks(match[1].split(","), links) : whatIfLink(match[2] ?? "", links);
    if (link === null) continue;
    parts.push(text.slice(from, match.index), link);
    from = match.index + match[0].length;
  }
  return (
    <>
      {parts}
      {text.slice(from)}
    </>
  );
}
