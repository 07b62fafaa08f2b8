// What is being typed into a field whose settled text stands elsewhere: in the page's address.
import { useState } from "preact/hooks";

/**
 * Begins as `settled`, and anew whenever that changes. It is worked out while drawing: an effect would come a frame later and
 * take away what was typed until then.
 */
export function useDraft(settled: string): [string, (text: string) => void] {
  const [draft, setDraft] = useState({ settled, text: settled });
  if (draft.settled !== settled) setDraft({ settled, text: settled });
  return [draft.settled === settled ? draft.text : settled, (text) => setDraft({ settled, text })];
}
