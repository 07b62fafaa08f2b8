// The choice of one rank among several; of one there is nothing to choose.
import type { Value } from "../data/report";
import { useChoice } from "./page_state";

/** `name` is its own on the page. */
export function useRank(name: string, ranks: Value[]): [Value, (rank: Value) => void] {
  const [text, choose] = useChoice(`rank.${name}`, ranks.map(String));
  return [ranks.find((rank) => String(rank) === text) ?? null, (rank) => choose(String(rank))];
}

export function RankChoice(props: { ranks: Value[]; rank: Value; onChoose: (rank: Value) => void }) {
  const { ranks, rank, onChoose } = props;
  if (ranks.length < 2) return null;
  return (
    <p class="charts">
      rank
      <select aria-label="of which rank" value={String(rank)} onChange={(event) => onChoose(ranks[event.currentTarget.selectedIndex] ?? null)}>
        {ranks.map((one) => (
          <option value={String(one)}>{String(one)}</option>
        ))}
      </select>
    </p>
  );
}
