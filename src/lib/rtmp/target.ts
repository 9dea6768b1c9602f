import { type AmfObject, stringOf } from "./amf0.ts";

const withoutSlashes = (path: string) => {
  let start = 0;
  let end = path.length;
  while (start < end && path[start] === "/") start++;
  while (end > start && path[end - 1] === "/") end--;
  return path.slice(start, end);
};

function split(text: string): { path: string; query: string } {
  const at = text.indexOf("?");
  return at === -1 ? { path: text, query: "" } : { path: text.slice(0, at), query: text.slice(at + 1) };
}

/**
 * App, name and query of a publish, from the connect object and the stream name. Encoders put the query of
 * `rtmp://host/app?query` into app, tcUrl or both; that of the stream name has priority.
 */
export function publishTarget(
  connect: AmfObject,
  streamName: string,
): { app: string; name: string; query: URLSearchParams } {
  const app = split(stringOf(connect.get("app")));
  const url = split(stringOf(connect.get("tcUrl")));
  const stream = split(streamName);
  const query = new URLSearchParams(stream.query);
  const more = [...new URLSearchParams(app.query), ...new URLSearchParams(url.query)];
  const given = new Set(query.keys());
  for (const [name, value] of more) {
    if (given.has(name)) continue;
    given.add(name);
    query.append(name, value);
  }
  return { app: withoutSlashes(app.path), name: withoutSlashes(stream.path), query };
}
