import { useEffect, useState } from "preact/hooks";
import { LIST_DELIVERIES_EVENT } from "#build/client/enums.ts";
import { vodbox } from "../api.ts";
import { BASE } from "../base.ts";

/** An event of the stream, as in webhook bodies. */
export type LiveEvent = { type: string; tenant_id: number; created_at: string; data: Record<string, unknown> };

/** Until an EventSource is opened again that its browser has given up. */
const REOPEN_MS = 2000;

type Listener = { onEvent(event: LiveEvent): void; onResume(): void };
const listeners = new Set<Listener>();
const watchers = new Set<(isConnected: boolean) => void>();
let source: EventSource | null = null;
let timer: ReturnType<typeof setTimeout> | undefined;
let isConnected = true;

function setConnected(next: boolean): void {
  if (next === isConnected) return;
  isConnected = next;
  for (const watch of watchers) watch(next);
}

function open(): void {
  const opened = new EventSource(`${BASE}/api/v1/events/stream`);
  source = opened;
  let wasLost = !isConnected;
  opened.onopen = () => {
    setConnected(true);
    // What was missed for longer than the server keeps it, and progress, is loaded again.
    if (wasLost) for (const { onResume } of listeners) onResume();
    wasLost = false;
  };
  opened.onerror = () => {
    wasLost = true;
    setConnected(false);
    // The browser connects again by itself, except after a response that is not an event stream.
    if (opened.readyState === EventSource.CLOSED && source === opened) timer = setTimeout(reopen, REOPEN_MS);
  };
  const receive = ({ data }: MessageEvent<string>) => {
    const event = JSON.parse(data) as LiveEvent;
    for (const { onEvent } of listeners) onEvent(event);
  };
  for (const type of [...LIST_DELIVERIES_EVENT, "job.progress"]) opened.addEventListener(type, receive);
}

/** Opens the stream again if the session is valid. One that has ended leads to the sign-in (api.ts). */
async function reopen(): Promise<void> {
  const lost = source;
  try {
    await vodbox.getSession();
  } catch {
    if (source === lost && lost !== null) timer = setTimeout(reopen, REOPEN_MS);
    return;
  }
  if (source === lost && lost !== null) open();
}

function close(): void {
  clearTimeout(timer);
  source?.close();
  source = null;
  setConnected(true);
}

/** Keeps one event stream open for all pages. `isAllowed`: whether the session may receive events. */
export function useEventStream(isAllowed: boolean): void {
  useEffect(() => {
    if (!isAllowed) return;
    open();
    return close;
  }, [isAllowed]);
}

/** Calls `onEvent` for each event, and `onResume` when the connection was lost and is open again. */
export function useLive(onEvent: Listener["onEvent"], onResume: Listener["onResume"]): void {
  useEffect(() => {
    const listener = { onEvent, onResume };
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  }, [onEvent, onResume]);
}

/** Whether the event stream is open; also true for a session that has none. */
export function useConnected(): boolean {
  const [value, setValue] = useState(isConnected);
  useEffect(() => {
    watchers.add(setValue);
    setValue(isConnected);
    return () => {
      watchers.delete(setValue);
    };
  }, []);
  return value;
}
