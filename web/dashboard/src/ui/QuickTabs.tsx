import { memo, useEffect, useRef, type KeyboardEvent } from "react";

import styles from "./QuickTabs.module.css";

export interface Quick {
  /** What is told apart by them. */
  readonly label: string;
  /** What a list shows that is filtered by it; everything where it is nothing, or none of them. */
  readonly value: string | undefined;
  readonly options: readonly { readonly value: string; readonly label: string }[];
  /** What the tab is called that leaves nothing out. */
  readonly all: string;
  /** An empty text takes the filter away. */
  readonly onFilter: (value: string) => void;
}

interface QuickTabsProps extends Quick {
  /** The element that holds what is listed. */
  readonly panelId: string;
}

const ALL = "";

/**
 * The few things that a list is most often filtered by, each a press away. They set a filter that others may set as well:
 * where that holds something else than one of these, none is chosen.
 */
export const QuickTabs = memo(function QuickTabs({
  label,
  all,
  value = ALL,
  options,
  onFilter,
  panelId,
}: QuickTabsProps) {
  const list = useRef<HTMLDivElement>(null);
  const tabs = [{ value: ALL, label: all }, ...options];
  const chosen = tabs.findIndex((one) => one.value === value);

  // On phones there is room for some of them. The page itself stays where it is.
  useEffect(() => {
    const tab = list.current?.querySelector<HTMLElement>("[aria-selected=true]");
    if (!list.current || !tab) return;
    const [around, of] = [list.current.getBoundingClientRect(), tab.getBoundingClientRect()];
    const past = Math.max(of.right - around.right, 0);
    list.current.scrollLeft += past > 0 ? past : Math.min(of.left - around.left, 0);
  }, [chosen]);

  function go(event: KeyboardEvent): void {
    // With one of these the browser means something else by it, as the page before.
    if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
    const from = [...(list.current?.children ?? [])].findIndex((one) => one === document.activeElement);
    const to = keyTo(event.key, from, tabs.length, document.documentElement.dir === "rtl");
    const tab = to === null ? undefined : tabs[to];
    if (to === null || tab === undefined) return;
    event.preventDefault();
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[to]?.focus();
    onFilter(tab.value);
  }

  return (
    <div ref={list} role="tablist" aria-label={label} className={styles.tabs} onKeyDown={go}>
      {tabs.map((one, index) => (
        <button
          key={one.value}
          type="button"
          role="tab"
          className={styles.tab}
          aria-selected={index === chosen}
          aria-controls={panelId}
          tabIndex={index === Math.max(chosen, 0) ? 0 : -1}
          onClick={() => {
            onFilter(one.value);
          }}
        >
          {one.label}
        </button>
      ))}
    </div>
  );
});

/** Return to which tab a key leads, around the ends; null where it is none that does. */
function keyTo(key: string, from: number, count: number, isRightToLeft: boolean): number | null {
  const forward = isRightToLeft ? "ArrowLeft" : "ArrowRight";
  const back = isRightToLeft ? "ArrowRight" : "ArrowLeft";
  if (key === forward) return (from + 1) % count;
  if (key === back) return (from - 1 + count) % count;
  if (key === "Home") return 0;
  return key === "End" ? count - 1 : null;
}
