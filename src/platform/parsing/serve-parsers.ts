import type { MessagePort } from "node:worker_threads";
import { TooComplex } from "#lib/base";
import { type FromThread, piecesOf, type ToThread } from "./protocol.ts";

type Parsers = Readonly<Record<string, (input: never) => unknown>>;

/** Runs `parsers` for the pool at the other end of `port`, one document at a time. */
export function serveParsers(port: MessagePort, parsers: Parsers): void {
  const send = (message: FromThread) => port.postMessage(message, buffersOf(message));
  let pieces: Iterator<FromThread, void> | undefined;
  port.on("message", async (message: ToThread) => {
    try {
      if (message.type === "parse") {
        const parse = parsers[message.parser] as (input: unknown) => unknown;
        const text = message.utf8 && decoded(message.utf8);
        if (text === null) return send({ type: "notUtf8" });
        pieces = piecesOf(await parse(text === undefined ? message.input : { ...(message.input as object), text }));
      }
      const next = pieces?.next();
      if (next && !next.done) send(next.value);
    } catch (error) {
      pieces = undefined;
      send(failure(error));
    }
  });
  send({ type: "ready" });
}

function decoded(bytes: Uint8Array): string | null {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}

function failure(error: unknown): FromThread {
  if (error instanceof TooComplex) return { type: "tooComplex", reason: error.message };
  // "Maximum call stack size exceeded" and "Invalid string length": limits that no parser checks itself.
  if (error instanceof RangeError)
    return { type: "tooComplex", reason: "It is nested too deeply or expands to too much." };
  const { name, message, stack } = error instanceof Error ? error : new Error(String(error));
  return { type: "failed", error: { name, message, stack } };
}

/** Buffers of a result are moved instead of being copied, unless they share memory with others. */
function buffersOf(message: FromThread): ArrayBuffer[] {
  if (message.type !== "result") return [];
  const { result } = message;
  const values = ArrayBuffer.isView(result) ? [result] : Object.values((result as object | undefined) ?? {});
  const whole = values.filter(
    (value): value is Uint8Array =>
      value instanceof Uint8Array && value.byteLength === value.buffer.byteLength && value.byteLength > 0,
  );
  return [...new Set(whole.map(({ buffer }) => buffer as ArrayBuffer))];
}
