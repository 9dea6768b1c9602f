import { until } from "./descendants.ts";

export type Received = { id: number | null; event: string; data: any };

/** Opens a stream of server-sent events over a socket. Throws the status when it is refused. */
export async function openStream(url: string, headers: Record<string, string>) {
  const gone = new AbortController();
  const response = await fetch(url, { headers, signal: gone.signal });
  if (response.headers.get("content-type") !== "text/event-stream") throw new Error(`${response.status}`);
  return readEvents(response, () => gone.abort());
}

/** Reads a response until it ends, with a parser of the tests' own. */
function readEvents(response: Response, close: () => void) {
  const messages: Received[] = [];
  let comments = 0;
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const decoder = new TextDecoder();
  const ended = (async () => {
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split("\n\n");
      text = blocks.pop() as string;
      for (const block of blocks) {
        const fields = new Map(block.split("\n").map((line) => line.split(/: ?(.*)/s) as [string, string]));
        const event = fields.get("event");
        if (fields.has("")) comments++;
        if (event === undefined) continue;
        const id = fields.get("id");
        messages.push({
          id: id === undefined ? null : Number(id),
          event,
          data: JSON.parse(fields.get("data") as string),
        });
      }
    }
  })();
  // A connection that breaks ends the stream too.
  const isEnded = ended.then(
    () => true,
    () => true,
  );
  return {
    messages,
    comments: () => comments,
    ended: isEnded,
    /** Waits for so many messages. */
    count: (number: number) => until(`${number} events`, async () => messages.length >= number),
    /** Disconnects. */
    close,
  };
}
export type Stream = Awaited<ReturnType<typeof openStream>>;
