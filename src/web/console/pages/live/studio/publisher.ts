import { vodbox } from "#web/console/api.ts";
import { BASE } from "#web/console/base.ts";
import type { LiveChannel } from "#web/console/types.ts";

/** Candidates of a host are there at once; a browser may wait much longer for others, which a server with an address does not need. */
const GATHERING_MS = 1500;
/** The server waits for 3 s of silence before it accepts the publisher again. */
const AGAIN_MS = 3500;
/** A connection without packets for so long is not expected to return by itself. */
const LOST_MS = 5000;
/** How long the request that ends a stream may take before the connection is closed anyway. */
const END_MS = 2000;
const MAX_VIDEO_BITRATE = 4_500_000;
const MAX_AUDIO_BITRATE = 128_000;

/** `again`: the connection was lost, and the stream waits for it. */
export type PublisherState = "off" | "connecting" | "live" | "again";

type Connection = { peer: RTCPeerConnection; session: string };

/** Publishes what a browser records to a channel, by WHIP (RFC 9725), until it is stopped. */
export class Publisher {
  readonly #channel: LiveChannel;
  readonly #onState: (state: PublisherState, error?: unknown) => void;
  #stream: MediaStream | null = null;
  #connection: Connection | null = null;
  #timer: ReturnType<typeof setTimeout> | undefined;
  /** Counts starts and stops: what belongs to an earlier one is given up. */
  #run = 0;

  constructor(channel: LiveChannel, onState: (state: PublisherState, error?: unknown) => void) {
    this.#channel = channel;
    this.#onState = onState;
  }

  /** Publishes `stream`. */
  async start(stream: MediaStream): Promise<void> {
    this.#stream = stream;
    this.#onState("connecting");
    await this.#connect(++this.#run, false);
  }

  /** Continues the stream with another camera, microphone or screen. */
  async replace(stream: MediaStream): Promise<void> {
    this.#stream = stream;
    const senders = this.#connection?.peer.getTransceivers() ?? [];
    for (const { sender, receiver } of senders) {
      const track = stream.getTracks().find(({ kind }) => kind === receiver.track.kind);
      if (track) await sender.replaceTrack(track);
    }
  }

  /** Ends the stream; also when the page is closed, because the request outlives it. */
  stop(): void {
    this.#run++;
    this.#close();
    this.#stream = null;
    this.#onState("off");
  }

  #close(): void {
    clearTimeout(this.#timer);
    if (this.#connection) end(this.#connection);
    this.#connection = null;
  }

  async #connect(run: number, isAgain: boolean): Promise<void> {
    try {
      const connection = await negotiate(this.#channel, this.#stream as MediaStream);
      if (run !== this.#run) return end(connection);
      this.#connection = connection;
      this.#follow(connection, run);
    } catch (error) {
      if (run !== this.#run) return;
      if (isAgain) return this.#retry(run, error);
      this.#run++;
      this.#onState("off", error);
    }
  }

  #follow({ peer }: Connection, run: number): void {
    const changed = () => {
      if (run !== this.#run || this.#connection?.peer !== peer) return;
      if (peer.connectionState === "connected") {
        clearTimeout(this.#timer);
        this.#onState("live");
      }
      if (peer.connectionState === "failed") this.#retry(run);
      if (peer.connectionState === "disconnected") this.#timer = setTimeout(() => this.#retry(run), LOST_MS);
    };
    peer.onconnectionstatechange = changed;
    changed();
  }

  #retry(run: number, error?: unknown): void {
    if (run !== this.#run) return;
    // Without a request: the stream continues.
    this.#connection?.peer.close();
    this.#connection = null;
    this.#onState("again", error);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.#connect(run, true), AGAIN_MS);
  }
}

/** The connection is closed after the request: a closed one ends the session as well, and the request would be a 404. */
function end({ peer, session }: Connection): void {
  const close = () => peer.close();
  // What is recorded ends at once.
  for (const sender of peer.getSenders()) void sender.replaceTrack(null).catch(() => {});
  void fetch(session, { method: "DELETE", keepalive: true }).then(close, close);
  setTimeout(close, END_MS);
}

async function negotiate({ id, channel }: LiveChannel, stream: MediaStream): Promise<Connection> {
  const { token } = await vodbox.createPublishToken({ id, body: {} });
  const peer = new RTCPeerConnection({ bundlePolicy: "max-bundle" });
  try {
    for (const track of stream.getTracks()) add(peer, track, stream);
    await peer.setLocalDescription(await peer.createOffer());
    await gathered(peer);
    // On the origin of this page: the API's may be another one, which the page's policy does not allow.
    const response = await fetch(`${BASE}/live/${channel}/whip`, {
      method: "POST",
      headers: { "content-type": "application/sdp", authorization: `Bearer ${token}` },
      body: peer.localDescription?.sdp ?? "",
    });
    if (response.status !== 201) throw new Error(await reason(response));
    const path = new URL(response.headers.get("location") ?? "", location.href).pathname;
    const session = `${BASE}${path.slice(path.indexOf(`/live/${channel}/whip/`))}`;
    await peer.setRemoteDescription({ type: "answer", sdp: await response.text() });
    return { peer, session };
  } catch (error) {
    peer.close();
    throw error;
  }
}

function add(peer: RTCPeerConnection, track: MediaStreamTrack, stream: MediaStream): void {
  const maxBitrate = track.kind === "video" ? MAX_VIDEO_BITRATE : MAX_AUDIO_BITRATE;
  const transceiver = peer.addTransceiver(track, {
    direction: "sendonly",
    streams: [stream],
    sendEncodings: [{ maxBitrate }],
  });
  if (track.kind !== "video") return;
  // The server plays H.264 as it is; a browser would prefer another codec.
  const codecs = RTCRtpSender.getCapabilities("video")?.codecs ?? [];
  const isH264 = ({ mimeType }: { mimeType: string }) => mimeType.toLowerCase() === "video/h264";
  const preferred = [...codecs.filter(isH264), ...codecs.filter((codec) => !isH264(codec))];
  if (preferred.length > 0) transceiver.setCodecPreferences(preferred);
}

/** Resolves when the browser knows all of its addresses, or after a limit. */
async function gathered(peer: RTCPeerConnection): Promise<void> {
  if (peer.iceGatheringState === "complete") return;
  await new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, GATHERING_MS);
    peer.onicegatheringstatechange = () => {
      if (peer.iceGatheringState !== "complete") return;
      clearTimeout(timer);
      resolve();
    };
  });
}

async function reason(response: Response): Promise<string> {
  const body = (await response.json().catch(() => null)) as { error?: string } | null;
  return body?.error ?? `HTTP ${response.status}`;
}
