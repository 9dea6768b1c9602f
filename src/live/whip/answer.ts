import { EXTENSION, type Negotiated, type NegotiatedTrack } from "./negotiation.ts";
import type { Codec, OfferedMedia } from "./offer.ts";

/** What the server has chosen for a session. */
export type LocalParameters = {
  /** A decimal number. */
  sessionId: string;
  ufrag: string;
  password: string;
  /** SHA-256 of the certificate: hexadecimal with colons. */
  fingerprint: string;
  candidates: readonly Candidate[];
};

export type Candidate = { address: string; port: number; transport: "udp" | "tcp" };

/** 5.2: nothing is decoded here, so the level of the publisher is not limited. */
const LEVEL = "34";
/** kbit/s. Browsers begin with 300 otherwise, and so with a small size, which the playlists would state for all of the stream. */
const START_BITRATE = 2500;
/** RFC 8445, 5.1.2.1: host candidates; the earlier ones and UDP are preferred (RFC 6544, 4.2). */
const PRIORITY = { udp: 126 * 2 ** 24 + 65_535 * 2 ** 8, tcp: 90 * 2 ** 24 + 65_535 * 2 ** 8 };

/** The SDP answer (RFC 8829, RFC 9725): everything on one connection, ICE lite, and the client begins DTLS. */
export function writeAnswer({ offer, media }: Negotiated, local: LocalParameters): string {
  const accepted = media.flatMap((track) => track?.mid ?? []);
  const lines = [
    "v=0",
    `o=- ${local.sessionId} 1 IN IP4 0.0.0.0`,
    "s=-",
    "t=0 0",
    "a=ice-lite",
    ...(accepted.every((mid) => mid !== "") ? [`a=group:BUNDLE ${accepted.join(" ")}`] : []),
    ...offer.media.flatMap((offered, index) => {
      const track = media[index];
      return track ? acceptedMedia(offered, track, local) : declinedMedia(offered, local);
    }),
  ];
  return `${lines.join("\r\n")}\r\n`;
}

const TYPES = { audio: "audio", video: "video", other: "application" } as const;

const declinedMedia = ({ kind, protocol, formats, mid }: OfferedMedia, { fingerprint }: LocalParameters): string[] => [
  `m=${TYPES[kind]} 0 ${protocol} ${formats.join(" ")}`,
  "c=IN IP4 0.0.0.0",
  // GStreamer 1.22 refuses an answer without it.
  `a=fingerprint:sha-256 ${fingerprint}`,
  ...(mid === "" ? [] : [`a=mid:${mid}`]),
  "a=inactive",
];

function acceptedMedia(offered: OfferedMedia, track: NegotiatedTrack, local: LocalParameters): string[] {
  const { payloadType: type, mid, extensions } = track;
  const codec = offered.codecs.find(({ payloadType }) => payloadType === type) as Codec;
  const has = (feedback: string) =>
    (offered.feedback.get(String(type))?.has(feedback) || offered.feedback.get("*")?.has(feedback)) ?? false;
  const agreed = Object.entries(extensions).flatMap(([name, id]) =>
    id === null ? [] : [`a=extmap:${id} ${EXTENSION[name as keyof typeof EXTENSION]}`],
  );
  const wanted = track.kind === "video" ? ["nack", "nack pli", "ccm fir", "transport-cc"] : ["nack", "transport-cc"];
  return [
    `m=${track.kind} 9 ${offered.protocol} ${type}`,
    "c=IN IP4 0.0.0.0",
    "a=rtcp:9 IN IP4 0.0.0.0",
    `a=ice-ufrag:${local.ufrag}`,
    `a=ice-pwd:${local.password}`,
    `a=fingerprint:sha-256 ${local.fingerprint}`,
    "a=setup:passive",
    ...(mid === "" ? [] : [`a=mid:${mid}`]),
    ...agreed,
    "a=recvonly",
    "a=rtcp-mux",
    track.kind === "audio" ? `a=rtpmap:${type} opus/48000/2` : `a=rtpmap:${type} H264/90000`,
    ...wanted.filter(has).map((feedback) => `a=rtcp-fb:${type} ${feedback}`),
    `a=fmtp:${type} ${track.kind === "audio" ? "minptime=10;useinbandfec=1;stereo=1" : videoParameters(codec)}`,
    ...(track.rids.length > 0
      ? [...track.rids.map((rid) => `a=rid:${rid} recv`), `a=simulcast:recv ${track.rids.join(";")}`]
      : []),
    ...local.candidates.map(candidateLine),
    "a=end-of-candidates",
  ];
}

/** The profile of the offer (RFC 6184, 8.2.2), with a higher level where both sides may differ. */
function videoParameters({ parameters }: Codec): string {
  const profile = parameters.get("profile-level-id") ?? "42e01f";
  const isAsymmetric = parameters.get("level-asymmetry-allowed") === "1";
  const level = isAsymmetric && profile.length === 6 ? `${profile.slice(0, 4)}${LEVEL}` : profile;
  const mode = parameters.get("packetization-mode") ?? "0";
  return `${isAsymmetric ? "level-asymmetry-allowed=1;" : ""}packetization-mode=${mode};profile-level-id=${level};x-google-start-bitrate=${START_BITRATE}`;
}

function candidateLine({ address, port, transport }: Candidate, index: number): string {
  const priority = PRIORITY[transport] - index * 256 + 255;
  const type = transport === "tcp" ? " tcptype passive" : "";
  return `a=candidate:${index + 1} 1 ${transport} ${priority} ${address} ${port} typ host${type}`;
}
