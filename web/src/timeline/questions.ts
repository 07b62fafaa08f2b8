// Questions of which only the latest of each kind counts: a new one lets the one before it go.
import { isAbort } from "../data/server";

export interface Outcome<T> {
  value: T | null;
  error: unknown;
}

export const NOTHING: Outcome<never> = { value: null, error: null };

export class Questions {
  private readonly asking = new Map<string, AbortController>();

  constructor(private readonly answered: () => void) {}

  /** `ask` null: there is nothing to ask any more. */
  ask<T>(kind: string, ask: ((signal: AbortSignal) => Promise<T>) | null, set: (outcome: Outcome<T>) => void): void {
    this.asking.get(kind)?.abort();
    if (ask === null) return set(NOTHING);
    const abort = new AbortController();
    this.asking.set(kind, abort);
    const done = (outcome: Outcome<T>) => {
      if (abort.signal.aborted) return;
      set(outcome);
      this.answered();
    };
    ask(abort.signal).then(
      (value) => done({ value, error: null }),
      (error) => isAbort(error) || done({ value: null, error }),
    );
  }

  close(): void {
    for (const abort of this.asking.values()) abort.abort();
  }
}
