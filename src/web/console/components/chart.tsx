import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";

type Props = {
  /** What is drawn, for screen readers. */
  label: string;
  kind: "bars" | "area";
  /** Ascending; seconds since the epoch when `isTime`. */
  xs: number[];
  ys: (number | null)[];
  /** Whether the horizontal axis is a calendar, by default in the viewer's zone. */
  isTime?: boolean;
  isUtc?: boolean;
  formatX(value: number): string;
  formatY(value: number): string;
  /** The least end of the vertical axis. */
  least?: number;
  /** The vertical axis has whole numbers only. */
  isWhole?: boolean;
  /** Below the plot and as wide, with a marker at the current point. */
  children?: ComponentChildren;
};

const HEIGHT = 260;
/** Steps of an axis of seconds that read well as minutes and hours. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 18_000, 36_000, 86_400];
const WHOLE = [1, 2, 5].flatMap((digit) => Array.from({ length: 13 }, (_, power) => digit * 10 ** power));
WHOLE.sort((a, b) => a - b);

/** The color that a token has now: a canvas does not know custom properties. */
function tokenColor(element: HTMLElement, token: string): string {
  element.style.color = `var(${token})`;
  const { color } = getComputedStyle(element);
  element.style.color = "";
  return color;
}

/** A chart of one series. The pointer and the arrow keys move a marker, whose value is shown and announced. */
export function Chart({ label, xs, ys, formatX, formatY, children, ...options }: Props) {
  const holder = useRef<HTMLDivElement>(null);
  const strip = useRef<HTMLDivElement>(null);
  const marker = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [index, setIndex] = useState<number | null>(null);
  const { kind, isTime = false, isUtc = false, least = 0, isWhole = false } = options;

  const placeStrip = ({ over }: uPlot) => {
    if (!strip.current) return;
    strip.current.style.marginInlineStart = `${over.offsetLeft}px`;
    strip.current.style.width = `${over.clientWidth}px`;
  };
  useEffect(() => {
    const element = holder.current as HTMLDivElement;
    const color = (token: string) => tokenColor(element, token);
    const step = xs.length > 1 ? (xs[1] as number) - (xs[0] as number) : 3600;
    const margin = kind === "bars" ? step / 2 : 0;
    const axis = {
      font: "12px system-ui, sans-serif",
      stroke: () => color("--quiet-text"),
      grid: { stroke: () => color("--line"), width: 1 },
      ticks: { show: false },
    };
    const bars = uPlot.paths.bars?.({ size: [0.75, 48] });
    const shown = new uPlot(
      {
        width: element.clientWidth,
        height: HEIGHT,
        legend: { show: false },
        cursor: { y: false, drag: { setScale: false, x: false, y: false }, points: { show: kind === "area" } },
        ...(isUtc && { tzDate: (seconds: number) => uPlot.tzDate(new Date(seconds * 1000), "Etc/UTC") }),
        scales: {
          x: { time: isTime, range: (_, min, max) => [min - margin, max + margin] },
          y: { range: (_, __, max) => [0, Math.max(least, (max || 0) * 1.1)] },
        },
        axes: [
          {
            ...axis,
            size: 32,
            space: 80,
            grid: { show: false },
            values: axisValues(isTime, isUtc, formatX, step),
            ...(!isTime && { incrs: SECONDS }),
          },
          {
            ...axis,
            size: 64,
            values: (_, values) => values.map(formatY),
            ...(isWhole && { incrs: WHOLE }),
          },
        ],
        series: [
          {},
          {
            stroke: () => color("--accent"),
            fill: () => color(kind === "bars" ? "--accent" : "--busy-back"),
            width: kind === "bars" ? 0 : 2,
            points: { show: false },
            ...(kind === "bars" && bars && { paths: bars }),
          },
        ],
        hooks: {
          setCursor: [
            ({ cursor: { idx, left = -1 } }) => {
              setIndex(left < 0 ? null : (idx ?? null));
              if (marker.current) {
                marker.current.hidden = left < 0;
                marker.current.style.insetInlineStart = `${left}px`;
              }
            },
          ],
          draw: [placeStrip],
        },
      },
      [xs, ys],
      element,
    );
    plot.current = shown;
    const redraw = () => shown.redraw(false);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    dark.addEventListener("change", redraw);
    const theme = new MutationObserver(redraw);
    theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    const size = new ResizeObserver(() => {
      if (element.clientWidth !== shown.width) shown.setSize({ width: element.clientWidth, height: HEIGHT });
    });
    size.observe(element);
    return () => {
      dark.removeEventListener("change", redraw);
      theme.disconnect();
      size.disconnect();
      shown.destroy();
      plot.current = null;
      setIndex(null);
    };
  }, [xs, ys, kind, isTime, isUtc, least, isWhole, formatX, formatY]);

  // The children may arrive after the plot was drawn.
  useEffect(() => {
    if (plot.current) placeStrip(plot.current);
  }, [children]);

  const moveTo = (next: number) => {
    const to = Math.max(0, Math.min(xs.length - 1, next));
    plot.current?.setCursor({ left: plot.current.valToPos(xs[to] as number, "x"), top: 0 });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const current = index ?? (event.key === "ArrowLeft" ? xs.length : -1);
    const next = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: xs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    moveTo(next);
  };
  const textAt = (at: number) => {
    const y = ys[at];
    return `${formatX(xs[at] as number)}: ${y === null || y === undefined ? "–" : formatY(y)}`;
  };
  const moveMarker = (event: PointerEvent) => {
    const left = event.clientX - (event.currentTarget as HTMLElement).getBoundingClientRect().left;
    plot.current?.setCursor({ left, top: 0 });
  };
  return (
    <div class="chart">
      <p class="chart-value">{index === null ? "\u00a0" : textAt(index)}</p>
      <div
        role="slider"
        tabIndex={0}
        aria-label={label}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, xs.length - 1)}
        aria-valuenow={index ?? 0}
        aria-valuetext={xs.length > 0 ? textAt(index ?? 0) : ""}
        onKeyDown={onKeyDown}
        ref={holder}
      />
      {children && (
        <div class="chart-strip" ref={strip} onPointerMove={moveMarker}>
          {children}
          <div class="chart-marker" ref={marker} hidden />
        </div>
      )}
    </div>
  );
}

/** The labels of the horizontal axis. Those of a calendar get shorter where the next ones say the rest. */
function axisValues(isTime: boolean, isUtc: boolean, formatX: (value: number) => string, step: number) {
  if (!isTime) return (_: uPlot, values: number[]) => values.map(formatX);
  const zone = isUtc ? { timeZone: "UTC" } : {};
  const language = document.documentElement.lang;
  const day = new Intl.DateTimeFormat(language, { day: "numeric", month: "short", ...zone });
  const hour = new Intl.DateTimeFormat(language, { hour: "numeric", minute: "2-digit", ...zone });
  return (_: uPlot, values: number[]) => {
    const gap = values.length > 1 ? (values[1] as number) - (values[0] as number) : step;
    return values.map((seconds) => (gap < 86_400 ? hour : day).format(seconds * 1000));
  };
}
