import { type App, forApp } from "#app.ts";
import type { IngestPorts } from "#live/ingest/messages.ts";
import { LIVE_APPLICATION, pathOf } from "./schema.ts";

/** Where encoders send streams, without the stream key. Null: that protocol is switched off. */
export type IngestUrls = {
  rtmp_url: string | null;
  rtmps_url: string | null;
  srt_url: string | null;
  whip_url: string | null;
};

/** The ports of this server, once they are known: a setting of 0 chooses a free one. */
const chosenPorts = forApp((): { ports: IngestPorts | null } => ({ ports: null }));

export function setIngestPorts(app: App, ports: IngestPorts): void {
  chosenPorts(app).ports = ports;
}

/** The host is that of the base URL, because encoders are outside. The application of RTMP is the start of all stream paths. */
export function ingestUrls(app: App, channel: string): IngestUrls {
  const { rtmpPort, rtmpsPort, srtPort, whipPort } = chosenPorts(app).ports ?? configured(app);
  const { hostname } = new URL(app.baseUrl());
  const url = (scheme: string, port: number | null, path: string) =>
    port === null || port === 0 ? null : `${scheme}://${hostname}:${port}${path}`;
  return {
    rtmp_url: url("rtmp", rtmpPort, `/${LIVE_APPLICATION}`),
    rtmps_url: url("rtmps", rtmpsPort, `/${LIVE_APPLICATION}`),
    srt_url: url("srt", srtPort, ""),
    // Offers are sent to the HTTP server, so the port of the media may not be known in this process.
    whip_url: whipPort === null ? null : whipUrl(app, channel),
  };
}

/** Where a publisher sends its offer: the HTTP server, of which WHIP uses the host and the scheme too. */
export const whipUrl = (app: App, channel: string): string => `${app.baseUrl()}/${pathOf(channel)}/whip`;

const configured = ({ config }: App): IngestPorts => ({
  rtmpPort: config.rtmp_port ?? null,
  rtmpsPort: config.rtmps_port ?? null,
  srtPort: config.srt_port ?? null,
  whipPort: config.whip_port ?? null,
});
