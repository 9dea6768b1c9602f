import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { atEnd } from "./folder.ts";

/**
 * A collector of traces: OTLP 1.x over HTTP in protobuf (opentelemetry-proto, collector/trace/v1 and trace/v1), decoded by
 * the numbers of the published schema, without a library of the sender.
 */

export type ReceivedSpan = {
  traceId: string;
  spanId: string;
  parentSpanId: string;
  name: string;
  kind: number;
  attributes: Record<string, string | number | boolean>;
  links: { traceId: string; spanId: string }[];
  /** 0: unset, 2: error. */
  status: number;
  nanoseconds: number;
  resource: Record<string, string | number | boolean>;
};
export type Collector = {
  endpoint: string;
  spans: ReceivedSpan[];
  /** Everything that arrived, as text. */
  raw(): string;
  headers: Record<string, unknown>[];
};

type Field = { number: number; value: bigint | Buffer };

/** The fields of a message (protocol buffers, wire types 0, 1, 2 and 5). */
function* fieldsOf(bytes: Buffer): Generator<Field> {
  let at = 0;
  const varint = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes[at++];
      if (byte === undefined) throw new Error("truncated");
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < bytes.length) {
    const key = Number(varint());
    const [number, type] = [key >> 3, key & 7];
    if (type === 0) yield { number, value: varint() };
    else {
      const length = type === 1 ? 8 : type === 5 ? 4 : type === 2 ? Number(varint()) : Number.NaN;
      if (!(at + length <= bytes.length)) throw new Error(`wire type ${type}, ${length} bytes at ${at}`);
      const part = bytes.subarray(at, at + length);
      at += length;
      if (type === 2) yield { number, value: part };
      else yield { number, value: type === 1 ? part.readBigUInt64LE() : BigInt(part.readUInt32LE()) };
    }
  }
}

const all = (bytes: Buffer, wanted: number): Buffer[] =>
  [...fieldsOf(bytes)].flatMap(({ number, value }) => (number === wanted && typeof value !== "bigint" ? [value] : []));
const one = (bytes: Buffer, wanted: number): Buffer => all(bytes, wanted).at(-1) ?? Buffer.alloc(0);
const numberIn = (bytes: Buffer, wanted: number): bigint => {
  const found = [...fieldsOf(bytes)].findLast(({ number }) => number === wanted)?.value;
  return typeof found === "bigint" ? found : 0n;
};
const hex = (bytes: Buffer) => bytes.toString("hex");

function attributesOf(keyValues: Buffer[]): ReceivedSpan["attributes"] {
  return Object.fromEntries(
    keyValues.map((pair) => {
      const [field] = fieldsOf(one(pair, 2));
      const { number, value } = field ?? { number: 1, value: Buffer.alloc(0) };
      const key = one(pair, 1).toString("utf8");
      if (typeof value !== "bigint") return [key, value.toString("utf8")];
      if (number === 4) {
        const double = Buffer.alloc(8);
        double.writeBigUInt64LE(value);
        return [key, double.readDoubleLE()];
      }
      return [key, number === 2 ? value === 1n : Number(BigInt.asIntN(64, value))];
    }),
  );
}

function spansOf(request: Buffer): ReceivedSpan[] {
  return all(request, 1).flatMap((ofResource) => {
    const resource = attributesOf(all(one(ofResource, 1), 1));
    return all(ofResource, 2).flatMap((ofScope) =>
      all(ofScope, 2).map((span) => ({
        traceId: hex(one(span, 1)),
        spanId: hex(one(span, 2)),
        parentSpanId: hex(one(span, 4)),
        name: one(span, 5).toString("utf8"),
        kind: Number(numberIn(span, 6)),
        nanoseconds: Number(numberIn(span, 8) - numberIn(span, 7)),
        attributes: attributesOf(all(span, 9)),
        links: all(span, 13).map((link) => ({ traceId: hex(one(link, 1)), spanId: hex(one(link, 2)) })),
        status: Number(numberIn(one(span, 15), 3)),
        resource,
      })),
    );
  });
}

/** `answer` responds to a request after it was recorded; by default with 200. */
export async function collector(answer?: (response: ServerResponse) => unknown): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const bodies: Buffer[] = [];
  const headers: Record<string, unknown>[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    bodies.push(body);
    headers.push({ ...request.headers, url: request.url });
    spans.push(...spansOf(body));
    if (answer) return void answer(response);
    response.writeHead(200, { "content-type": "application/x-protobuf" }).end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  atEnd(
    () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { endpoint, spans, headers, raw: () => Buffer.concat(bodies).toString("latin1") };
}

/** The environment that enables traces, without a wait before they are sent. */
export const tracing = ({ endpoint }: Collector, more: Record<string, string> = {}): Record<string, string> => ({
  OTEL_EXPORTER_OTLP_ENDPOINT: endpoint,
  OTEL_BSP_SCHEDULE_DELAY: "50",
  ...more,
});
