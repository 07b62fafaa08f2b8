// Copies a text. The clipboard interface is missing in sandboxed frames and on old file: pages, so there is a second
// way, and a third: the text in a field to be copied by hand.
import { useState } from "preact/hooks";

async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    field.setAttribute("readonly", "");
    field.className = "offscreen";
    document.body.append(field);
    field.select();
    let copied = false;
    try {
      copied = document.execCommand("copy");
    } catch {
      copied = false;
    }
    field.remove();
    return copied;
  }
}

export function CopyButton(props: { label: string; text: () => string }) {
  const [state, setState] = useState<"" | "copied" | "failed">("");
  const copy = async () => {
    const copied = await copyText(props.text());
    setState(copied ? "copied" : "failed");
    if (copied) setTimeout(() => setState(""), 1500);
  };
  return (
    <>
      <button type="button" class="copy" onClick={copy}>
        <span aria-live="polite">{state === "copied" ? "Copied" : props.label}</span>
      </button>
      {state === "failed" && (
        <textarea class="by-hand" aria-label="Select all and copy" readOnly value={props.text()} onFocus={(e) => e.currentTarget.select()} />
      )}
    </>
  );
}
