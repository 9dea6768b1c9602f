import type { RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

/** Rows outside of what is visible that are rendered too, so that the keyboard reaches them, and scrolling shows no gaps. */
const OVERSCAN = 4;
/** Browsers limit the height of an element; Firefox to 17.8 million pixels. */
const MAX_HEIGHT = 16_000_000;

export type Virtual = {
  /** Rows to render; `last` is exclusive. */
  first: number;
  last: number;
  /** The height of all rows, in pixels. */
  height: number;
  /** Rows that the browser can show. */
  rows: number;
  scrollTo(row: number): void;
};

/** The part of a long list of rows of one height that is visible. The list is scrolled by the page, or by `scroller`. */
export function useVirtual(
  list: RefObject<HTMLElement | null>,
  { rows: all, rowHeight, scroller }: { rows: number; rowHeight: number; scroller?: RefObject<HTMLElement | null> },
): Virtual {
  const rows = Math.min(all, Math.floor(MAX_HEIGHT / rowHeight));
  const [range, setRange] = useState<[number, number]>([0, 0]);
  const frame = useRef(0);
  const measure = useCallback(() => {
    const rect = list.current?.getBoundingClientRect();
    if (!rect) return;
    const clip = scroller?.current?.getBoundingClientRect();
    const top = Math.max(0, clip?.top ?? 0) - rect.top;
    const bottom = Math.min(innerHeight, clip?.bottom ?? innerHeight) - rect.top;
    const first = Math.max(0, Math.floor(top / rowHeight) - OVERSCAN);
    const last = Math.max(0, Math.min(rows, Math.ceil(bottom / rowHeight) + OVERSCAN));
    setRange((known) => (known[0] === first && known[1] === last ? known : [Math.min(first, last), last]));
  }, [rows, rowHeight]);
  useLayoutEffect(measure, [measure]);
  useEffect(() => {
    const later = () => {
      cancelAnimationFrame(frame.current);
      frame.current = requestAnimationFrame(measure);
    };
    // Scroll events do not bubble; those of the page and of any element arrive here while they are captured.
    document.addEventListener("scroll", later, { capture: true, passive: true });
    const observer = new ResizeObserver(later);
    observer.observe(document.body);
    if (scroller?.current) observer.observe(scroller.current);
    return () => {
      cancelAnimationFrame(frame.current);
      document.removeEventListener("scroll", later, { capture: true });
      observer.disconnect();
    };
  }, [measure]);
  const scrollTo = useCallback(
    (row: number) => {
      const rect = list.current?.getBoundingClientRect();
      if (!rect) return;
      const box = scroller?.current;
      const clip = box?.getBoundingClientRect();
      const top = Math.max(0, clip?.top ?? 0);
      const bottom = Math.min(innerHeight, clip?.bottom ?? innerHeight);
      const at = rect.top + row * rowHeight;
      const by = at < top ? at - top : at + rowHeight > bottom ? at + rowHeight - bottom : 0;
      (box ?? window).scrollBy({ top: by, behavior: "instant" });
      measure();
    },
    [measure, rowHeight],
  );
  return { first: range[0], last: Math.min(range[1], rows), height: rows * rowHeight, rows, scrollTo };
}
