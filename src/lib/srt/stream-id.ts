import { REJECTION } from "./rejections.ts";

/** `name` and `query` are as sent: not checked. */
export type StreamTarget = { app: string; name: string; query: URLSearchParams };

const STANDARD = "#!::";
const PUBLISH = "publish";

/**
 * What a caller wants to publish, from its Stream ID, or the reason to reject it with. `publish:live/<channel>:key=…`,
 * where the last part is a query; or the syntax of SRT Access Control, `#!::r=live/<channel>,m=publish,key=…`, where `u`
 * is the user name.
 */
export function readStreamId(id: string): StreamTarget | number {
  return id.startsWith(STANDARD) ? readStandard(id.slice(STANDARD.length)) : readShort(id);
}

function readShort(id: string): StreamTarget | number {
  const [mode, path = "", ...query] = id.split(":");
  if (mode === "read" || mode === "play" || mode === "request") return REJECTION.badMode;
  if (mode !== PUBLISH) return REJECTION.badRequest;
  return targetOf(path, new URLSearchParams(query.join(":")));
}

function readStandard(items: string): StreamTarget | number {
  const query = new URLSearchParams();
  let path = "";
  let mode = "request";
  for (const item of items.split(",")) {
    const at = item.indexOf("=");
    if (at < 1) return REJECTION.badRequest;
    const name = item.slice(0, at);
    const value = item.slice(at + 1);
    if (name === "r") path = value;
    else if (name === "m") mode = value;
    else query.set(name === "u" ? "user" : name, value);
  }
  return mode === PUBLISH ? targetOf(path, query) : REJECTION.badMode;
}

function targetOf(path: string, query: URLSearchParams): StreamTarget | number {
  const at = path.indexOf("/");
  if (at < 1 || at === path.length - 1) return REJECTION.badRequest;
  return { app: path.slice(0, at), name: path.slice(at + 1), query };
}
