import { createHmac, randomBytes, X509Certificate } from "node:crypto";
import { createSocket, type Socket } from "node:dgram";
import { connect, type Socket as TcpSocket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import {
  CipherContext,
  DtlsClient,
  HashAlgorithm,
  NamedCurveAlgorithm,
  RtpHeader,
  SignatureAlgorithm,
  SrtcpSession,
  SrtpSession,
} from "werift";
import { atEnd } from "../folder.ts";
import type { Timed } from "./whip-media.ts";

/*
 * A publisher of WHIP that sends what a test wants: packets may be lost, delayed or malformed. STUN, RTP and RTCP are written here
 * independently of the server.
 */

export const VIDEO_TYPE = 96;
export const AUDIO_TYPE = 111;
const NTP_EPOCH = 2_208_988_800;
const [GCM, CM] = [7, 1] as const;

export type OfferOptions = {
  video?: boolean;
  audio?: boolean;
  videoCodec?: string;
  audioCodec?: string;
  rids?: string[];
  /** Lost packets of video are sent again. */
  nack?: boolean;
  /** sprop-parameter-sets. */
  sets?: string;
};

/** As a browser writes it, with less. */
export function offerOf(
  fingerprint: string,
  {
    video = true,
    audio = true,
    videoCodec = "H264/90000",
    audioCodec = "opus/48000/2",
    rids = [],
    nack = true,
    sets,
  }: OfferOptions = {},
): string {
  const transport = [
    ...["c=IN IP4 0.0.0.0", "a=ice-ufrag:abcd", "a=ice-pwd:abcdefghijklmnopqrstuvwx"],
    ...[`a=fingerprint:sha-256 ${fingerprint}`, "a=setup:actpass", "a=rtcp-mux", "a=sendonly"],
  ];
  const layers =
    rids.length > 0 ? [...rids.map((rid) => `a=rid:${rid} send`), `a=simulcast:send ${rids.join(";")}`] : [];
  const videoLines = [
    ...[`m=video 9 UDP/TLS/RTP/SAVPF ${VIDEO_TYPE}`, ...transport, "a=mid:v", `a=rtpmap:${VIDEO_TYPE} ${videoCodec}`],
    ...[...(nack ? [`a=rtcp-fb:${VIDEO_TYPE} nack`] : []), `a=rtcp-fb:${VIDEO_TYPE} nack pli`],
    `a=fmtp:${VIDEO_TYPE} packetization-mode=1;profile-level-id=42e01f;level-asymmetry-allowed=1${sets === undefined ? "" : `;sprop-parameter-sets=${sets}`}`,
    ...layers,
  ];
  const audioLines = [
    ...[`m=audio 9 UDP/TLS/RTP/SAVPF ${AUDIO_TYPE}`, ...transport, "a=mid:a", `a=rtpmap:${AUDIO_TYPE} ${audioCodec}`],
  ];
  const mids = [...(audio ? ["a"] : []), ...(video ? ["v"] : [])];
  return `${[
    ...["v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", `a=group:BUNDLE ${mids.join(" ")}`],
    ...(audio ? audioLines : []),
    ...(video ? videoLines : []),
  ].join("\r\n")}\r\n`;
}

export type Endpoint = { base: string; channel: string; key: string };

export const sendOffer = ({ base, channel, key }: Endpoint, offer: string) =>
  fetch(`${base}/live/${channel}/whip`, {
    method: "POST",
    headers: { "content-type": "application/sdp", authorization: `Bearer ${key}` },
    body: offer,
  });

/** Sends an offer to a server. `location`: of the session. */
export type Exchange = (offer: string) => Promise<{ status: number; answer: string; location: string }>;

export const overHttp =
  (endpoint: Endpoint): Exchange =>
  async (offer) => {
    const response = await sendOffer(endpoint, offer);
    const location = response.headers.get("location") as string;
    return { status: response.status, answer: await response.text(), location };
  };

type Identity = Awaited<ReturnType<typeof CipherContext.createSelfSignedCertificateWithKey>> & { fingerprint: string };
let identity: Promise<Identity> | undefined;
export const ownIdentity = (): Promise<Identity> => {
  identity ??= CipherContext.createSelfSignedCertificateWithKey(
    { signature: SignatureAlgorithm.ecdsa_3, hash: HashAlgorithm.sha256_4 },
    NamedCurveAlgorithm.secp256r1_23,
  ).then((made) => ({ ...made, fingerprint: new X509Certificate(made.certPem).fingerprint256 }));
  return identity;
};

export type ConnectOptions = OfferOptions & {
  /** Share of the packets that are lost on their way, retransmitted ones too. */
  loss?: number;
  /** Every fifth packet arrives after the next one, or every packet arrives twice. */
  network?: "swapped" | "doubled";
  tcp?: boolean;
  /** The profiles of SRTP, by their numbers: 7 for AES-GCM, 1 for AES-CM with HMAC-SHA1. */
  profiles?: (1 | 7)[];
  /** Another certificate than that of the handshake is in the offer. */
  fingerprint?: string;
};

/** A random share with a fixed seed. */
function lossOf(share: number): () => boolean {
  let state = 12_345;
  return () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff;
    return (state >>> 8) / 2 ** 23 < share;
  };
}

/** One source of RTP. */
export class Source {
  readonly id: number;
  readonly type: number;
  readonly rate: number;
  sequence = randomBytes(2).readUInt16BE();
  /** The timestamp at 0 ms. */
  base = randomBytes(4).readUInt32BE();
  readonly history = new Map<number, Buffer>();

  constructor(type: number, id = randomBytes(4).readUInt32BE()) {
    this.type = type;
    this.id = id;
    this.rate = type === VIDEO_TYPE ? 90 : 48;
  }

  timestamp = (ms: number) => (this.base + Math.round(ms * this.rate)) >>> 0;
}

/** Another source. `at`: when a frame is sent, if that is later than its time. */
export type Layer = { source: Source; frames: readonly (Timed & { at?: number })[] };

export class WhipClient {
  readonly location: string;
  readonly answer: string;
  /** Requests for keyframes, and for packets, that have arrived. */
  keyframeRequests = 0;
  resent = 0;
  readonly video = new Source(VIDEO_TYPE);
  readonly audio = new Source(AUDIO_TYPE);
  readonly #send: (packet: Buffer) => void;
  readonly #isLost: () => boolean;
  readonly #network: ConnectOptions["network"];
  /** A packet that arrives after the next one. */
  #delayed: Buffer | null = null;
  #transmitted = 0;
  readonly #destroy: () => void;
  readonly #end = Promise.withResolvers<void>();
  /** Resolves when the server has closed the DTLS connection. */
  readonly closed = this.#end.promise;
  /** Resolves when its TCP connection has ended. */
  readonly ended: Promise<void>;
  #isClosed = false;
  #checks: NodeJS.Timeout | undefined;
  #srtp: SrtpSession | null = null;
  #srtcp: SrtcpSession | null = null;

  private constructor(
    exchanged: { location: string; answer: string },
    { send, destroy, ended, loss = 0, network }: Link & Pick<ConnectOptions, "loss" | "network">,
  ) {
    this.ended = ended ?? Promise.resolve();
    this.location = exchanged.location;
    this.answer = exchanged.answer;
    this.#send = (packet) => {
      if (!this.#isClosed) send(packet);
    };
    this.#destroy = destroy;
    this.#isLost = lossOf(loss);
    this.#network = network;
    atEnd(() => this.abandon());
  }

  /** Resolves when media can be sent. Throws for another status than 201. */
  static async connect(endpoint: Endpoint | Exchange, options: ConnectOptions = {}): Promise<WhipClient> {
    const own = await ownIdentity();
    const exchange = typeof endpoint === "function" ? endpoint : overHttp(endpoint);
    const exchanged = await exchange(offerOf(options.fingerprint ?? own.fingerprint, options));
    const { status, answer } = exchanged;
    if (status !== 201) throw new Error(`${status} ${answer}`);
    const [, address, port] = /candidate:\d+ 1 udp \d+ (\S+) (\d+)/.exec(answer) as unknown as [string, string, string];
    let onPacket: (packet: Buffer) => void = () => {};
    const link = await (options.tcp ? tcpLink : udpLink)(address, Number(port), (packet) => onPacket(packet));
    const client = new WhipClient(exchanged, { ...link, ...options });
    await client.#handshake(
      own,
      (receive) => {
        onPacket = receive;
      },
      options.profiles,
    );
    return client;
  }

  /** Sends both tracks in real time. `audioDelayMs`: how much later audio arrives than video of the same time. */
  async publish(
    {
      video = [],
      audio = [],
      layers = [],
    }: { video?: readonly Timed[]; audio?: readonly Timed[]; layers?: readonly Layer[] },
    {
      audioDelayMs = 0,
      stopped = () => false,
      wallMs = (ms) => ms,
    }: {
      audioDelayMs?: number;
      stopped?: () => boolean;
      /** What the clock of the sender shows at that time of the media, from the start on; null: there is no report. */
      wallMs?: (ms: number) => number | null;
    } = {},
  ): Promise<void> {
    const due = [
      ...video.map((timed) => ({ ...timed, source: this.video, at: timed.ms })),
      ...audio.map((timed) => ({ ...timed, source: this.audio, at: timed.ms + audioDelayMs })),
      ...layers.flatMap(({ source, frames }) => frames.map((timed) => ({ at: timed.ms, ...timed, source }))),
    ].toSorted((one, other) => one.at - other.at);
    const startMs = Date.now();
    let reportedAt = Number.NEGATIVE_INFINITY;
    for (const { source, ms, at, payloads } of due) {
      if (stopped() || this.#isClosed) return;
      // Real time: the server measures how fast media arrive.
      const wait = startMs + at - Date.now();
      if (wait > 0) await sleep(wait);
      this.send(source, ms, payloads);
      if (at - reportedAt < 300) continue;
      reportedAt = at;
      const shown = wallMs(at);
      if (shown === null) continue;
      for (const one of [this.video, this.audio, ...layers.map(({ source: other }) => other)])
        this.report(one, { ms: at, wallMs: startMs + shown });
    }
  }

  /** The packets of one frame. */
  send(source: Source, ms: number, payloads: readonly Buffer[]): void {
    for (const [index, payload] of payloads.entries()) {
      const sequenceNumber = source.sequence;
      source.sequence = (source.sequence + 1) & 0xffff;
      const isLast = index === payloads.length - 1;
      const header = new RtpHeader({
        version: 2,
        payloadType: source.type,
        sequenceNumber,
        ssrc: source.id,
        timestamp: source.timestamp(ms),
        marker: isLast && source.type === VIDEO_TYPE,
      });
      const packet = (this.#srtp as SrtpSession).encrypt(payload, header);
      source.history.set(sequenceNumber, packet);
      if (source.history.size > 2000) source.history.delete(source.history.keys().next().value as number);
      this.#transmit(packet);
    }
  }

  /** A sender report: `ms` of the source was at `wallMs`. */
  report(source: Source, { ms, wallMs }: { ms: number; wallMs: number }): void {
    const report = Buffer.alloc(28);
    report.writeUInt32BE(0x80c80006, 0);
    report.writeUInt32BE(source.id, 4);
    report.writeUInt32BE(Math.floor(wallMs / 1000) + NTP_EPOCH, 8);
    report.writeUInt32BE(Math.floor(((wallMs % 1000) / 1000) * 2 ** 32), 12);
    report.writeUInt32BE(source.timestamp(ms), 16);
    this.#send((this.#srtcp as SrtcpSession).encrypt(report));
  }

  /** The same packet as it is. */
  raw(packet: Buffer): void {
    this.#send(packet);
  }

  /** Stops without a message, like a machine that loses its network. */
  abandon(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearInterval(this.#checks);
    this.#destroy();
  }

  #transmit(packet: Buffer): void {
    if (this.#isLost()) return;
    this.#transmitted++;
    if (this.#network === "swapped" && this.#delayed === null && this.#transmitted % 5 === 0) {
      this.#delayed = packet;
      return;
    }
    this.#send(packet);
    if (this.#network === "doubled") this.#send(packet);
    if (this.#delayed) this.#send(this.#delayed);
    this.#delayed = null;
  }

  async #handshake(
    own: Identity,
    subscribe: (receive: (packet: Buffer) => void) => void,
    profiles: (1 | 7)[] = [GCM, CM],
  ): Promise<void> {
    const field = (name: string) => new RegExp(`^a=${name}:(\\S+)`, "m").exec(this.answer)?.[1] as string;
    const check = checkOf(`${field("ice-ufrag")}:abcd`, field("ice-pwd"));
    const checked = Promise.withResolvers<void>();
    const connected = Promise.withResolvers<void>();
    const transport = {
      type: "udp",
      address: { address: "127.0.0.1", family: "IPv4", port: 0 },
      closed: false,
      onData: (_: Buffer, __: readonly [string, number]) => {},
      send: async (packet: Buffer) => this.#send(packet),
      close: async () => {},
    };
    subscribe((packet) => {
      const first = packet[0] as number;
      if (first < 4) checked.resolve();
      else if (first >= 20 && first < 64) transport.onData(packet, ["127.0.0.1", 0]);
      else if (first >= 128) this.#feedback(packet);
    });
    this.#checks = setInterval(() => this.#send(check()), 300);
    this.#send(check());
    await checked.promise;
    const dtls = new DtlsClient({
      cert: own.certPem,
      key: own.keyPem,
      signatureHash: own.signatureHash,
      transport,
      srtpProfiles: profiles,
      extendedMasterSecret: true,
    });
    dtls.onConnect.subscribe(() => connected.resolve());
    dtls.onError.subscribe((error) => connected.reject(error));
    dtls.onClose.subscribe(() => this.#end.resolve());
    await dtls.connect();
    await connected.promise;
    const profile = dtls.srtp.srtpProfile as number;
    const keys = dtls.extractSessionKeys(16, profile === GCM ? 12 : 14);
    const named = {
      localMasterKey: keys.localKey,
      localMasterSalt: keys.localSalt,
      remoteMasterKey: keys.remoteKey,
      remoteMasterSalt: keys.remoteSalt,
    };
    this.#srtp = new SrtpSession({ keys: named, profile });
    this.#srtcp = new SrtcpSession({ keys: named, profile });
  }

  /** Sends packets again that are requested. */
  #feedback(packet: Buffer): void {
    if (!this.#srtcp) return;
    const plain = this.#srtcp.decrypt(packet);
    for (let at = 0; at + 4 <= plain.length; at += 4 * (plain.readUInt16BE(at + 2) + 1)) {
      const format = (plain[at] as number) & 0x1f;
      const type = plain[at + 1];
      if (type === 206 && format === 1) this.keyframeRequests++;
      if (type !== 205 || format !== 1) continue;
      const source = [this.video, this.audio].find(({ id }) => id === plain.readUInt32BE(at + 8));
      const end = at + 4 * (plain.readUInt16BE(at + 2) + 1);
      for (let entry = at + 12; entry < end; entry += 4) {
        const first = plain.readUInt16BE(entry);
        const following = plain.readUInt16BE(entry + 2);
        for (let bit = -1; bit < 16; bit++) {
          if (bit >= 0 && !(following & (1 << bit))) continue;
          const known = source?.history.get((first + bit + 1) & 0xffff);
          if (!known) continue;
          this.resent++;
          this.#transmit(known);
        }
      }
    }
  }
}

/** `ended`: the TCP connection has. */
type Link = { send: (packet: Buffer) => void; destroy: () => void; ended?: Promise<void> };

function udpLink(address: string, port: number, onPacket: (packet: Buffer) => void): Promise<Link> {
  const socket: Socket = createSocket("udp4");
  socket.on("message", onPacket).on("error", () => {});
  return new Promise((resolve) =>
    socket.bind(0, "127.0.0.1", () =>
      resolve({ send: (packet) => socket.send(packet, port, address, () => {}), destroy: () => socket.close() }),
    ),
  );
}

function tcpLink(address: string, port: number, onPacket: (packet: Buffer) => void): Promise<Link> {
  const socket: TcpSocket = connect(port, address);
  let rest = Buffer.alloc(0);
  socket
    .on("error", () => {})
    .on("data", (data) => {
      rest = Buffer.concat([rest, data]);
      while (rest.length >= 2 && rest.length >= 2 + rest.readUInt16BE()) {
        const end = 2 + rest.readUInt16BE();
        onPacket(rest.subarray(2, end));
        rest = rest.subarray(end);
      }
    });
  const send = (packet: Buffer) => {
    const length = Buffer.alloc(2);
    length.writeUInt16BE(packet.length);
    socket.write(Buffer.concat([length, packet]));
  };
  const ended = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  const link = { send, destroy: () => socket.destroy(), ended };
  return new Promise((resolve) => socket.once("connect", () => resolve(link)));
}

/** Binding requests with USE-CANDIDATE (RFC 8445, 7.1). */
export function checkOf(username: string, password: string): () => Buffer {
  const attribute = (type: number, value: Buffer) => {
    const head = Buffer.alloc(4);
    head.writeUInt16BE(type);
    head.writeUInt16BE(value.length, 2);
    return Buffer.concat([head, value, Buffer.alloc((4 - (value.length % 4)) % 4)]);
  };
  return () => {
    const body = Buffer.concat([attribute(0x0006, Buffer.from(username)), attribute(0x0025, Buffer.alloc(0))]);
    const head = Buffer.alloc(8);
    head.writeUInt16BE(1);
    head.writeUInt16BE(body.length + 24, 2);
    head.writeUInt32BE(0x2112a442, 4);
    const message = Buffer.concat([head, randomBytes(12), body]);
    return Buffer.concat([message, attribute(0x0008, createHmac("sha1", password).update(message).digest())]);
  };
}
