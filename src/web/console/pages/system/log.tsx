import { useEffect, useRef, useState } from "preact/hooks";
import { BASE } from "#web/console/base.ts";
import { Badge } from "#web/console/components/badge.tsx";
import { useLanguage, useTexts } from "#web/console/texts/texts.tsx";
import { texts } from "./texts.ts";

const MAX_LINES = 500;
const LEVELS = ["debug", "info", "warn", "error"] as const;
const COLORS: Record<string, string> = { warn: "processing", error: "errored", fatal: "errored" };

type Line = { key: number; time: string; level: string; msg: string; more: string };

let last = 0;
function lineOf(text: string): Line {
  const { time, level, msg, ...more } = JSON.parse(text) as Record<string, unknown>;
  const fields = Object.entries(more).map(
    ([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`,
  );
  return { key: ++last, time: String(time), level: String(level), msg: String(msg ?? ""), more: fields.join(" ") };
}

/** The server's log, as it is written. The stream is open only while this is shown. */
export function Log() {
  const t = useTexts(texts);
  const { language } = useLanguage();
  const [level, setLevel] = useState<(typeof LEVELS)[number]>("info");
  const [words, setWords] = useState("");
  const [isPaused, setPaused] = useState(false);
  const [lines, setLines] = useState<Line[]>([]);
  const list = useRef<HTMLOListElement>(null);
  useEffect(() => {
    if (isPaused) return;
    const source = new EventSource(`${BASE}/api/v1/admin/logs/stream?level=${level}`);
    let waiting: Line[] = [];
    let frame = 0;
    // A stream begins with the newest lines.
    source.onopen = () => setLines([]);
    source.addEventListener("line", ({ data }: MessageEvent<string>) => {
      waiting.push(lineOf(data));
      frame ||= requestAnimationFrame(() => {
        const added = waiting;
        waiting = [];
        frame = 0;
        setLines((known) => [...known, ...added].slice(-MAX_LINES));
      });
    });
    return () => {
      source.close();
      cancelAnimationFrame(frame);
    };
  }, [level, isPaused]);
  const shown = lines.filter(({ msg, more }) => `${msg} ${more}`.toLowerCase().includes(words.trim().toLowerCase()));
  useEffect(() => {
    const element = list.current;
    if (element && !isPaused) element.scrollTop = element.scrollHeight;
  }, [shown.length, isPaused]);
  const format = new Intl.DateTimeFormat(language, { timeStyle: "medium" });
  return (
    <section aria-labelledby="log">
      <div class="page-head">
        <h2 id="log">{t("log")}</h2>
        <button type="button" onClick={() => setPaused(!isPaused)}>
          {isPaused ? t("follow") : t("pause")}
        </button>
      </div>
      <div class="row filters">
        <label class="grow">
          <span class="unseen">{t("findLine")}</span>
          <input
            type="search"
            placeholder={t("findLine")}
            onInput={({ currentTarget }) => setWords(currentTarget.value)}
          />
        </label>
        <label>
          {t("level")}{" "}
          <select
            value={level}
            onChange={({ currentTarget }) => setLevel(currentTarget.value as (typeof LEVELS)[number])}
          >
            {LEVELS.map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        </label>
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard. */}
      <ol class="log" ref={list} tabIndex={0} aria-label={t("log")}>
        {shown.map(({ key, time, level: own, msg, more }) => (
          <li key={key}>
            <time dateTime={time}>{format.format(new Date(time))}</time>{" "}
            <Badge state={COLORS[own] ?? "queued"} text={own} /> {msg} <span class="fine">{more}</span>
          </li>
        ))}
      </ol>
      {shown.length === 0 && <p class="empty">{t("noLines")}</p>}
    </section>
  );
}
