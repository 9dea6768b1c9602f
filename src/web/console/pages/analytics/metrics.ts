import type { Result } from "#clients/typescript/types.ts";
import { count, duration } from "#web/console/format.ts";
import type { Language } from "#web/console/texts/dictionary.ts";
import type { texts } from "./texts.ts";

export type Analytics = Result<"getAnalytics"> | Result<"getAssetAnalytics">;
export type Bucket = NonNullable<Result<"getAnalytics">["timeseries"]>[number];

export type Metric = {
  name: keyof typeof texts.en;
  /** What is counted, in a sentence. */
  meaning: keyof typeof texts.en;
  /** Whether less of it is better. */
  isLessBetter?: boolean;
  /** The column of a CSV file: the API's field. */
  field: keyof Bucket;
  total(analytics: Analytics): number | null;
  /** A second line of the tile; null where there is nothing to add. */
  more?(analytics: Analytics, language: Language): string | null;
  format(value: number, language: Language): string;
  /** The least end of the vertical axis. */
  least: number;
  isWhole?: boolean;
};

const percent = (value: number, language: Language) =>
  new Intl.NumberFormat(language, { style: "percent", maximumFractionDigits: 1 }).format(value);
const seconds = (ms: number, language: Language) =>
  `${new Intl.NumberFormat(language, { maximumFractionDigits: 2 }).format(ms / 1000)} s`;
/** `2 h 5 min` from an hour on, else `4:05`. */
const watchTime = (value: number, language: Language) =>
  value < 3600 ? duration(value) : `${count(Math.floor(value / 3600), language)} h ${Math.floor(value / 60) % 60} min`;

export const METRICS: readonly Metric[] = [
  {
    name: "plays",
    meaning: "playsMeaning",
    field: "play_count",
    total: (all) => all.play_count,
    format: count,
    least: 5,
    isWhole: true,
  },
  {
    name: "viewers",
    meaning: "viewersMeaning",
    field: "unique_viewers",
    total: (all) => all.unique_viewers,
    format: count,
    least: 5,
    isWhole: true,
  },
  {
    name: "watchTime",
    meaning: "watchTimeMeaning",
    field: "watch_time_seconds",
    total: (all) => all.watch_time_seconds,
    more: (all) => `⌀ ${duration(all.average_watch_seconds)}`,
    format: watchTime,
    least: 60,
    isWhole: true,
  },
  {
    name: "completion",
    meaning: "completionMeaning",
    field: "completion_rate",
    total: (all) => all.completion_rate,
    format: percent,
    least: 0.1,
  },
  {
    name: "startup",
    meaning: "startupMeaning",
    isLessBetter: true,
    field: "startup_p50_ms",
    total: (all) => all.startup?.p50_ms ?? null,
    more: (all, language) => (all.startup?.p95_ms == null ? null : `95 %: ${seconds(all.startup.p95_ms, language)}`),
    format: seconds,
    least: 500,
  },
  {
    name: "rebuffering",
    meaning: "rebufferingMeaning",
    isLessBetter: true,
    field: "rebuffer_ratio",
    total: (all) => all.rebuffering?.ratio ?? null,
    more: (all, language) => (all.rebuffering ? `${count(all.rebuffering.count, language)} ×` : null),
    format: percent,
    least: 0.01,
  },
  {
    name: "errors",
    meaning: "errorsMeaning",
    isLessBetter: true,
    field: "error_count",
    total: (all) => all.error_count,
    format: count,
    least: 5,
    isWhole: true,
  },
];

export const formatPercent = percent;
export const formatWatchTime = watchTime;
