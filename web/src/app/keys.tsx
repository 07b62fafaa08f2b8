// The list of keys, shown by “?”.
import { useEffect, useRef } from "preact/hooks";

const KEYS: [string, [string, string][]][] = [
  [
    "Everywhere",
    [
      ["?", "this list"],
      ["[ ]", "page before, next page"],
      ["T, Q", "timeline, query"],
      ["Alt + ←, →", "back, forward"],
    ],
  ],
  [
    "Timeline",
    [
      ["W, S", "closer, further (also Ctrl + wheel)"],
      ["A, D", "earlier, later (also Shift + wheel, drag)"],
      ["↑, ↓", "scroll"],
      ["Shift + drag", "choose a stretch: its statistics"],
      ["click", "choose a slice: its details and links"],
      ["Enter, Shift + Enter", "to the next, the previous linked slice"],
      ["F", "fit what is chosen; nothing chosen: everything"],
      ["C", "show the critical path, or hide it"],
      ["M", "mark what is chosen, or take its mark away"],
      ["/", "search"],
      ["N, P", "next, previous found slice"],
      ["Esc", "choose nothing"],
    ],
  ],
  ["Query", [["Ctrl + Enter", "run"]]],
];

export function KeysDialog(props: { onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog class="keys" ref={dialog} onClose={props.onClose} aria-label="keys">
      {KEYS.map(([where, keys]) => (
        <>
          <h3>{where}</h3>
          <dl>
            {keys.map(([key, does]) => [
              <dt>
                <kbd>{key}</kbd>
              </dt>,
              <dd>{does}</dd>,
            ])}
          </dl>
        </>
      ))}
      <form method="dialog">
        <button type="submit" autofocus>
          close
        </button>
      </form>
    </dialog>
  );
}
