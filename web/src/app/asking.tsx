// What is asked of the server and how it stands: being made (with its share), here, or failed with a hint.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { ServerError, askRuns, isAbort, stale } from "../data/server";
import type { Run } from "../data/server";
import { percent } from "../draw/format";
import { Said } from "../draw/said";

export interface Asked<T> {
  value: T | null;
  share: number | null;
  error: unknown;
}

type Ask<T> = (signal: AbortSignal, share: (share: number | null) => void) => Promise<T>;

/** Asks anew when one of `inputs` changes; what was there stays until the new is here. Null: there is nothing to ask. */
export function useAsked<T>(ask: Ask<T> | null, inputs: unknown[]): Asked<T> {
  const [state, setState] = useState<Asked<T>>({ value: null, share: null, error: null });
  useEffect(() => {
    if (ask === null) return setState({ value: null, share: null, error: null });
    const abort = new AbortController();
    setState((old) => (old.error === null ? old : { ...old, error: null }));
    ask(abort.signal, (share) => setState((old) => ({ ...old, share }))).then(
      (value) => !abort.signal.aborted && setState({ value, share: null, error: null }),
      (error) => !abort.signal.aborted && !isAbort(error) && setState({ value: null, share: null, error }),
    );
    return () => abort.abort();
  }, inputs);
  return state;
}

const SOON_MS = 100; // several questions may be refused at once
const POLL_MS = 2000;
const QUIET_MS = 10_000; // a file may be replaced, or a job begin to write, at any time

/** The runs, asked again: soon while one is being opened or a job is running, else now and then. */
export function useRuns(): { runs: Run[] | null; error: unknown } {
  const [state, setState] = useState<{ runs: Run[] | null; error: unknown }>({ runs: null, error: null });
  useEffect(() => {
    const abort = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      let again = true;
      let wait = POLL_MS;
      try {
        const list = await askRuns(abort.signal);
        if (!list.runs.some((run) => run.state === "opening" || run.live === true)) wait = QUIET_MS;
        setState({ runs: list.runs, error: null });
      } catch (error) {
        if (isAbort(error)) return;
        // A token that is not right does not become so; a server that is away may come back.
        again = !(error instanceof ServerError && error.status >= 400 && error.status < 500);
        setState((old) => ({ runs: old.runs, error }));
      }
      if (again && !abort.signal.aborted) timer = setTimeout(ask, wait);
    };
    const askNow = () => {
      clearTimeout(timer);
      timer = setTimeout(ask, SOON_MS);
    };
    stale.addEventListener("stale", askNow);
    void ask();
    return () => {
      stale.removeEventListener("stale", askNow);
      clearTimeout(timer);
      abort.abort();
    };
  }, []);
  return state;
}

export function FaultBox(props: { error: unknown; children?: ComponentChildren }) {
  const { error } = props;
  return (
    <div class="failed" role="alert">
      <bdi>{error instanceof Error ? error.message : String(error)}</bdi>
      {error instanceof ServerError && error.hint && <p class="hint"><Said text={error.hint} /></p>}
      {props.children}
    </div>
  );
}

export function Waiting(props: { what: string; share: number | null }) {
  return (
    <p class="waiting" role="status">
      {props.what}
      {props.share !== null && ` · ${percent(props.share)}`}
      <progress max={1} value={props.share ?? undefined} />
    </p>
  );
}
