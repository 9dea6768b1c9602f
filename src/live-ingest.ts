import type { ChildProcess } from "node:child_process";
import type { App } from "#app.ts";
import { setIngestPorts, whipUrl } from "#features/live/ingest-urls.ts";
import { liveEncodes } from "#features/live/renditions/live-encodes.ts";
import { LIVE_APPLICATION } from "#features/live/schema.ts";
import { liveSpeech } from "#features/live/speech/live-speech.ts";
import { liveFolder } from "#features/live/streams/folders.ts";
import { liveStreams } from "#features/live/streams/live-streams.ts";
import { LiveRelay } from "#features/live/streams/relay.ts";
import { whipRequests } from "#features/live/whip/requests.ts";
import { UserError } from "#lib/base";
import { ChildSupervisor, spawnSelf } from "#lib/executable";
import type { FromIngest, IngestOptions, IngestPorts, ToIngest } from "#live/ingest/messages.ts";
import { readPair, tlsFiles, watchPair } from "./tls.ts";

const FIRST_WAIT_MS = 500;

export type LiveIngest = {
  /** URLs that publishers use, without the stream key. */
  urls: string[];
  /** Ends all streams, and completes their recordings. */
  stop(): Promise<void>;
};

/**
 * Starts the process that receives live streams, and restarts it when it exits. Resolves when it listens. Throws a
 * UserError when it cannot.
 */
export async function startLiveIngest(app: App): Promise<LiveIngest> {
  const streams = liveStreams(app);
  const encodes = liveEncodes(app);
  const speech = liveSpeech(app);
  const whip = whipRequests(app);
  const relay = app.peers && new LiveRelay(app, app.peers);
  const files = tlsFiles(app.config);
  const first = Promise.withResolvers<IngestPorts>();
  // A free port is chosen once: publishers reconnect to it.
  const { rtmp_port = null, rtmps_port = null, srt_port = null, whip_port = null } = app.config;
  let ports: IngestPorts = { rtmpPort: rtmp_port, rtmpsPort: rtmps_port, srtPort: srt_port, whipPort: whip_port };
  let child: ChildProcess | null = null;
  const send = (message: ToIngest) => {
    if (child?.connected) child.send(message, () => {});
  };

  const supervisor = new ChildSupervisor({
    firstWaitMs: FIRST_WAIT_MS,
    spawn() {
      const started = spawnSelf(["live-ingest"], { stdio: ["ignore", "inherit", "inherit", "ipc"] });
      child = started;
      started.on("message", (message: FromIngest) => {
        switch (message.type) {
          case "ready":
            ports = message.ports;
            setIngestPorts(app, ports);
            first.resolve(ports);
            streams
              .connected(send)
              .catch((error) => app.log.error({ err: error }, "live streams could not be recovered"));
            return;
          case "failed":
            app.log.error({ reason: message.reason }, "live streams cannot be received");
            return first.reject(cannotListen(message.reason));
          case "log":
            return app.log[message.level](message.fields, message.message);
          case "whip":
            return whip.answer(message);
          default:
            streams.receive(message);
            relay?.report(message);
            encodes.observe(message);
            speech.observe(message);
        }
      });
      send({ type: "options", options: optionsOf(app, ports, files && readPair(files)) });
      return started;
    },
    onError: (_, error) => first.reject(error),
    onExit: () => {
      encodes.clear();
      speech.clear();
      whip.clear();
      relay?.ended();
      streams.disconnected();
      return true;
    },
    onRestart: (_, exit, waitMs) => app.log.warn({ ...exit, again_in_ms: waitMs }, "the live ingest process exited"),
  });
  speech.answerBy(send);
  relay?.lead(send);
  whip.lead(send);
  for (const reporter of [encodes, speech])
    reporter.replicateBy((report) => {
      relay?.report(report);
      streams.shareRendition(report);
    });
  supervisor.start(0);
  const endWatch = files
    ? watchPair(files, app.log, ({ cert, key }) =>
        send({ type: "tls", tls: { cert: cert.toString(), key: key.toString() } }),
      )
    : () => {};

  const stop = async () => {
    endWatch();
    send({ type: "shutdown" });
    await supervisor.stop();
    await streams.idle();
    streams.close();
  };
  try {
    const { rtmpPort, rtmpsPort, srtPort, whipPort } = await first.promise;
    const { host } = app.config;
    const address = host.includes(":") ? `[${host}]` : host;
    const url = (scheme: string, port: number | null, path: string) =>
      port === null ? [] : [`${scheme}://${address}:${port}${path}`];
    const path = `/${LIVE_APPLICATION}`;
    return {
      urls: [
        ...[...url("rtmp", rtmpPort, path), ...url("rtmps", rtmpsPort, path)],
        ...[...url("srt", srtPort, ""), ...(whipPort === null ? [] : [whipUrl(app, "<channel>")])],
      ],
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

const cannotListen = (reason: string) =>
  new UserError(
    `Live streams cannot be received: ${reason}. Choose another port with VODBOX_RTMP_PORT, VODBOX_RTMPS_PORT, VODBOX_SRT_PORT or VODBOX_WHIP_PORT.`,
  );

function optionsOf(app: App, ports: IngestPorts, pair: ReturnType<typeof readPair> | null): IngestOptions {
  const { config } = app;
  return {
    folder: liveFolder(app),
    host: config.host,
    ...ports,
    srtPassphrase: config.srt_passphrase ?? null,
    whipAddresses: config.whip_addresses,
    ffmpeg: config.ffmpeg ?? null,
    tls: pair && { cert: pair.cert.toString(), key: pair.key.toString() },
    minFreeBytes: config.min_free_bytes,
    connectionsPerAddress: config.rtmp_connections_per_address,
    allowCidrs: config.webhook_allow_cidrs,
  };
}
