// What a reader chose on the page. The served page keeps it in its address and hands the place down; without one each part
// keeps its own.
import { createContext } from "preact";
import { useContext, useState } from "preact/hooks";

export type Params = Record<string, string>;

export interface PageState {
  params: Params; // of the address, so not ours to trust
  /** Those that are "" are taken out. `replace`: not worth a step back. */
  change: (params: Params, replace: boolean) => void;
}

export const PageState = createContext<PageState | null>(null);

/** All that is kept, and how to keep more. */
export function useKept(): [Params, (key: string, value: string, replace: boolean) => void] {
  const state = useContext(PageState);
  const [own, setOwn] = useState<Params>({});
  const set = (key: string, value: string, replace: boolean) => {
    if (state) state.change({ [key]: value }, replace);
    else setOwn((before) => ({ ...before, [key]: value }));
  };
  return [state?.params ?? own, set];
}

/** One of `choices`, at first `first`. `key` is its own on the page: "show.steps.field". */
export function useChoice(key: string, choices: string[], first = choices[0] ?? ""): [string, (choice: string) => void] {
  const [kept, set] = useKept();
  const text = kept[key] ?? "";
  return [choices.includes(text) ? text : first, (choice) => set(key, choice === first ? "" : choice, false)];
}

/** The same for the places in a list of so many. */
export function useNumber(key: string, count: number): [number, (at: number) => void] {
  const [text, choose] = useChoice(key, Array.from({ length: count }, (_, at) => String(at)));
  return [Number(text), (at) => choose(String(at))];
}
