import { connect, type Socket } from "node:net";

export type PipelinedRequest = { method?: string; path: string; headers?: Record<string, string>; body?: string };

export const written = ({ method = "GET", path, headers = {}, body }: PipelinedRequest): string => {
  const length = body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) };
  const lines = Object.entries({ host: "x", ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n${body ?? ""}`;
};

export type PipelinedAnswer = { status: number; headers: Map<string, string>; bytes: number; text: string };
const TEXT_BYTES = 4096;

/** Reads complete responses, with Content-Length, from a stream of bytes. Keeps only the first bytes of each body. */
export function answerReader(onAnswer: (answer: PipelinedAnswer) => void): (chunk: Buffer) => void {
  let head = "";
  let answer: PipelinedAnswer | null = null;
  let left = 0;
  return (chunk) => {
    for (let at = 0; at < chunk.length; ) {
      if (!answer) {
        const before = head.length;
        head += chunk.toString("latin1", at, Math.min(chunk.length, at + 16_384));
        const end = head.indexOf("\r\n\r\n");
        if (end === -1) {
          at += head.length - before;
          continue;
        }
        at += end + 4 - before;
        const [first = "", ...lines] = head.slice(0, end).split("\r\n");
        const pairs = lines.map((line) => line.split(/:\s*/, 2) as [string, string]);
        const headers = new Map(pairs.map(([name, value]) => [name.toLowerCase(), value]));
        answer = { status: Number(first.split(" ")[1]), headers, bytes: 0, text: "" };
        left = Number(headers.get("content-length") ?? 0);
        head = "";
      }
      const part = chunk.subarray(at, at + left);
      if (answer.text.length < TEXT_BYTES) answer.text += part.toString("utf8", 0, TEXT_BYTES);
      answer.bytes += part.length;
      left -= part.length;
      at += part.length;
      if (left > 0) continue;
      onAnswer(answer);
      answer = null;
    }
  };
}

/** Sends all requests on one connection at once. The caller reads the socket, or not. */
export function pipeline(base: string, requests: readonly PipelinedRequest[]): Socket {
  const { hostname, port } = new URL(base);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  socket.write(requests.map(written).join(""));
  return socket;
}

/** Sends all requests on one connection at once and returns their responses, in order. */
export function pipelined(base: string, requests: readonly PipelinedRequest[]): Promise<PipelinedAnswer[]> {
  const socket = pipeline(base, requests);
  return new Promise((resolve, reject) => {
    const answers: PipelinedAnswer[] = [];
    const read = answerReader((answer) => {
      answers.push(answer);
      if (answers.length === requests.length) socket.destroy();
    });
    socket.on("data", read);
    socket.on("close", () => {
      if (answers.length === requests.length) resolve(answers);
      else reject(new Error(`The connection was closed after ${answers.length} of ${requests.length} responses`));
    });
  });
}
