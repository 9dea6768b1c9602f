import { join } from "node:path";
import { setTimeout } from "#lib/base";
import { binariesAside, cacheDir } from "#lib/executable";
import type { Log } from "#lib/publishing";
import { createRtmpServer, type RtmpServer } from "#lib/rtmp";
import { createSrtServer } from "#lib/srt";
import { connector } from "../simulcast/connect.ts";
import type { WhipServer, WhipServerOptions } from "../whip/server.ts";
import { diskReserve } from "./disk-reserve.ts";
import { recoverRecording } from "./finish-recording.ts";
import { Gateway } from "./gateway.ts";
import type { FromIngest, IngestOptions, Permission, PublishQuestion, ToIngest, ToIngestOf } from "./messages.ts";
import { recordingFolder } from "./packaged-stream.ts";

/** The channel to the server that started this process. */
export type IngestChannel = {
  send(message: FromIngest): void;
  /** `receive` is called with each message, in order. */
  onMessage(receive: (message: ToIngest) => void): void;
};

/** How long an authorization may take before the publisher is asked to try again. */
const ANSWER_MS = 8000;

/** Receives publishers until the server ends it. Resolves when all streams are complete and reported. */
export async function runIngest({ send, onMessage }: IngestChannel): Promise<void> {
  const { promise: stopped, resolve: stop } = Promise.withResolvers<void>();
  let running: Promise<Ingest | null> | undefined;
  const questions = new Map<number, (permission: Permission) => void>();
  let asked = 0;
  const ask = (publish: PublishQuestion) =>
    new Promise<Permission>((resolve) => {
      const number = ++asked;
      const answer = (permission: Permission) => {
        clearTimeout(timer);
        questions.delete(number);
        resolve(permission);
      };
      const timer = setTimeout(() => answer({ accepted: false, reason: "unavailable" }), ANSWER_MS);
      questions.set(number, answer);
      send({ type: "question", number, publish });
    });

  onMessage((message) => {
    switch (message.type) {
      case "options":
        running ??= start(message.options, { ask, send });
        // The server starts it again.
        void running.then((ingest) => ingest ?? stop());
        return;
      case "answer":
        return questions.get(message.number)?.(message.permission);
      case "shutdown":
        return stop();
      default:
        void running?.then((ingest) => ingest && receive(ingest, message, send));
    }
  });
  await stopped;
  const ingest = await running;
  if (!ingest) return;
  await ingest.gateway.close();
  await Promise.all(ingest.servers.map((server) => server.close()));
}

type Ingest = {
  gateway: Gateway;
  servers: { close(): Promise<void> }[];
  rtmps: RtmpServer | null;
  whip: WhipServer | null;
  folder: string;
  requireSpace: () => Promise<void>;
};
type Server = { ask: (question: PublishQuestion) => Promise<Permission>; send: (message: FromIngest) => void };

/** A message that only a running ingest can handle. */
function receive(
  ingest: Ingest,
  message: Exclude<ToIngest, ToIngestOf<"options" | "answer" | "shutdown">>,
  send: Server["send"],
): void {
  const { gateway, rtmps } = ingest;
  switch (message.type) {
    case "stop":
      return gateway.stop(message.stream, message.reason);
    case "spoken":
      return gateway.speechWritten(message.stream);
    case "targets":
      return gateway.setTargets(message.channelId, message.targets);
    case "clip":
      return void clip(ingest, message, send);
    case "whip":
      return void answerWhip(ingest, message, send);
    case "recover":
      return void recoverStream(ingest, message, send);
    case "tls":
      return rtmps?.setTls(message.tls);
    default:
      message satisfies never;
  }
}

/** Null when it cannot listen. */
async function start(options: IngestOptions, { ask, send }: Server): Promise<Ingest | null> {
  const requireSpace = diskReserve(options.folder, options.minFreeBytes);
  const connect = connector(options.allowCidrs);
  const ffmpeg = async () =>
    (await binariesAside({ ffmpeg: options.ffmpeg ?? undefined, cacheDir: cacheDir() })).ffmpeg;
  const gateway = new Gateway({ ...options, ffmpeg, requireSpace, connect, ask, send });
  const log: Log = (level, message, fields) => send({ type: "log", level, message, fields });
  const limits = { connectionsPerAddress: options.connectionsPerAddress };
  const authorize = gateway.authorize.bind(gateway);
  const listen = async (port: number | null, tls: IngestOptions["tls"]) => {
    if (port === null) return null;
    const server = createRtmpServer({ authorize, limits, log, ...(tls && { tls }) });
    await server.listen(port, options.host);
    return server;
  };
  try {
    const rtmp = await listen(options.rtmpPort, null);
    const rtmps = await listen(options.rtmpsPort, options.tls);
    const srt =
      options.srtPort === null ? null : createSrtServer({ authorize, limits, log, passphrase: options.srtPassphrase });
    await srt?.listen(options.srtPort ?? 0, options.host);
    const whip =
      options.whipPort === null ? null : await startWhip(options, { authorize, limits, log, ffmpeg: await ffmpeg() });
    await whip?.listen(options.whipPort ?? 0, options.host);
    send({
      type: "ready",
      ports: {
        rtmpPort: rtmp?.port ?? null,
        rtmpsPort: rtmps?.port ?? null,
        srtPort: srt?.port ?? null,
        whipPort: whip?.port ?? null,
      },
    });
    const servers = [rtmp, rtmps, srt, whip].filter((server) => server !== null);
    return { gateway, servers, rtmps, whip, folder: options.folder, requireSpace };
  } catch (error) {
    send({ type: "failed", reason: (error as Error).message });
    return null;
  }
}

/** Its libraries are loaded only with it. */
async function startWhip(
  options: IngestOptions,
  shared: Pick<WhipServerOptions, "authorize" | "limits" | "log" | "ffmpeg">,
): Promise<WhipServer> {
  const { createWhipServer } = await import("../whip/server.ts");
  return createWhipServer({ ...shared, addresses: options.whipAddresses });
}

async function answerWhip({ whip }: Ingest, { number, request }: ToIngestOf<"whip">, send: Server["send"]) {
  const isOff = { status: 503, message: "This server does not receive WHIP at this time." } as const;
  send({ type: "whip", number, answer: whip ? await whip.handle(request) : isOff });
}

async function clip({ gateway, folder }: Ingest, { clip, stream, wanted }: ToIngestOf<"clip">, send: Server["send"]) {
  try {
    send({ type: "clip", clip, made: await gateway.clip(stream, wanted, join(folder, clip)) });
  } catch (error) {
    const fields = { stream, error: String(error) };
    send({ type: "log", level: "error", message: "a clip could not be made", fields });
    send({ type: "clip", clip });
  }
}

async function recoverStream(ingest: Ingest, { stream, from, isEncoded }: ToIngestOf<"recover">, send: Server["send"]) {
  const { folder, requireSpace } = ingest;
  try {
    const options = { admit: requireSpace, withSource: isEncoded };
    const finished = await recoverRecording(join(folder, from), recordingFolder(folder, stream), options);
    send({ type: "finished", stream, finished });
  } catch (error) {
    const fields = { stream, error: String(error) };
    send({ type: "log", level: "error", message: "a recording could not be recovered", fields });
  }
}
