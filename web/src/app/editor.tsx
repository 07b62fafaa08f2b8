// The field of a page that asks the server something written: what is typed, run by its button or Ctrl + Enter.
import type { ComponentChildren } from "preact";

export interface EditorProps {
  label: string;
  hint?: string; // shown while it is empty
  rows: number;
  text: string;
  onText: (text: string) => void;
  run: string; // what the button says
  onRun: (text: string) => void;
  children: ComponentChildren; // beside the button
}

export function Editor(props: EditorProps) {
  const { text, onRun } = props;
  return (
    <>
      <textarea
        aria-label={props.label}
        placeholder={props.hint}
        rows={props.rows}
        spellcheck={false}
        dir="ltr"
        value={text}
        onInput={(event) => props.onText(event.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          onRun(text);
        }}
      />
      <p class="query-tools">
        <button type="button" class="run" onClick={() => onRun(text)}>
          {props.run}
        </button>
        {props.children}
      </p>
    </>
  );
}
