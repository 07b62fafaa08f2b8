// Several views of the same thing, one shown at a time.
import type { ComponentChild } from "preact";
import { useChoice } from "./page_state";

export interface Tab {
  name: string;
  label: string;
  view: () => ComponentChild;
}

/** `name` is its own on the page: the choice is kept by it. */
export function Tabs(props: { name: string; label: string; tabs: Tab[] }) {
  const { tabs } = props;
  const [chosen, choose] = useChoice(`show.${props.name}`, tabs.map((tab) => tab.name));
  const shown = tabs.find((tab) => tab.name === chosen);
  if (tabs.length === 1) return <>{tabs[0]!.view()}</>;
  return (
    <div class="tabs">
      <div class="tab-row" role="group" aria-label={props.label}>
        {tabs.map((tab) => (
          <button type="button" aria-pressed={tab.name === chosen} data-tab={tab.name} onClick={() => choose(tab.name)}>
            {tab.label}
          </button>
        ))}
      </div>
      <div key={chosen}>{shown?.view()}</div>
    </div>
  );
}
