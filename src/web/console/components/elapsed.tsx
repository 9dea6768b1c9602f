import { useEffect, useState } from "preact/hooks";
import { duration } from "../format.ts";

/** The time from `from` to `to`, or until now, which it counts along. */
export function Elapsed({ from, to }: { from: string | null; to: string | null }) {
  const [now, setNow] = useState(Date.now());
  const isRunning = from !== null && to === null;
  useEffect(() => {
    if (!isRunning) return;
    setNow(Date.now());
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  if (from === null) return <>–</>;
  // The server's clock may be ahead of the viewer's.
  const ms = Math.max(0, (to === null ? now : Date.parse(to)) - Date.parse(from));
  return <span class="figure">{duration(ms / 1000)}</span>;
}
