// A moment that a table or a finding names, as a state of the timeline: "RANK:START:DURATION" in the page's address, on the
// clock of the rank's file.
import { formatNumbers } from "../data/route";
import type { TimelineIndex, TimelineRank } from "../data/server";
import type { Moment } from "../draw/page_links";
import { foldedAtFirst, layOut } from "./lanes";

const NARROWEST = 20_000; // ns: of what has no length, so much is seen around it

export function momentText(moment: Moment): string {
  return [moment.rank, moment.start, moment.duration].map((value) => (value === null ? "" : String(value))).join(":");
}

function afterOrigin(rank: TimelineRank, text: string): number {
  return rank.first + Number(BigInt(text) - BigInt(rank.first_ns)) * rank.rate;
}

/** Parameters of the timeline that show it; null: no such moment is on it. */
export function momentParams(text: string, index: TimelineIndex): Record<string, string> | null {
  const match = /^(-?\d{0,9}):(-?\d{1,20})(?:\.\d*)?:(\d{0,18})(?:\.\d*)?$/.exec(text);
  if (match === null) return null;
  const of = index.ranks.map((_, at) => at).filter((at) => (match[1] === "" ? index.ranks.length === 1 : String(index.ranks[at]!.rank ?? -1) === match[1]));
  // Of several recordings of a rank the one that was running then.
  const running = (at: number) => {
    const start = afterOrigin(index.ranks[at]!, match[2]!);
    return start >= index.ranks[at]!.first && start <= index.ranks[at]!.last;
  };
  const at = of.find(running) ?? of[0] ?? -1;
  const rank = index.ranks[at];
  if (rank === undefined) return null;
  const start = afterOrigin(rank, match[2]!);
  const duration = Number(match[3] ?? 0);
  if (!(start + duration >= 0 && start <= index.end)) return null;
  const around = Math.max(duration * 0.6, NARROWEST / 2);
  const inside = (time: number) => String(Math.round(Math.min(Math.max(time, 0), index.end)));
  const params: Record<string, string> = { from: inside(start - around), to: inside(start + duration + around) };
  if (duration > 0) params.range = `${inside(start)}-${inside(start + duration)}`;
  else params.marks = inside(start);
  const folded = foldedAtFirst(index);
  if (folded.ranks.delete(at)) params.folded_ranks = formatNumbers(folded.ranks) || "none";
  const top = layOut(index, folded).bands.find((band) => band.rank === at)?.top ?? 0;
  if (top > 0) params.top = String(Math.round(top));
  return params;
}
