import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";

type Props<Name extends string> = {
  /** Name of the list for screen readers. */
  label: string;
  tabs: readonly (readonly [Name, string])[];
  selected: Name;
  onSelect(name: Name): void;
  /** What the selected tab shows. */
  children: ComponentChildren;
};

/** Sections of which one is shown. Arrow keys, Home and End move between the tabs, as in the ARIA pattern. */
export function Tabs<Name extends string>({ label, tabs, selected, onSelect, children }: Props<Name>) {
  const list = useRef<HTMLDivElement>(null);
  const onKeyDown = (event: KeyboardEvent) => {
    const at = tabs.findIndex(([name]) => name === selected);
    const last = tabs.length - 1;
    const to = { ArrowRight: at === last ? 0 : at + 1, ArrowLeft: at === 0 ? last : at - 1, Home: 0, End: last }[
      event.key
    ];
    const next = to === undefined ? undefined : tabs[to];
    if (next === undefined || to === undefined) return;
    event.preventDefault();
    onSelect(next[0]);
    (list.current?.children[to] as HTMLElement | undefined)?.focus();
  };
  return (
    <>
      <div class="tab-list" role="tablist" aria-label={label} ref={list} onKeyDown={onKeyDown}>
        {tabs.map(([name, text]) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={name === selected}
            aria-controls="tab-panel"
            tabIndex={name === selected ? 0 : -1}
            onClick={() => onSelect(name)}
          >
            {text}
          </button>
        ))}
      </div>
      <div class="tab-panel" role="tabpanel" id="tab-panel" aria-labelledby={`tab-${selected}`}>
        {children}
      </div>
    </>
  );
}
