import type { Codec, Offer, OfferedMedia } from "./offer.ts";

/** The offer is valid, but lacks what this server needs. The message is for the publisher. */
export class OfferNotAcceptable extends Error {}

export const EXTENSION = {
  mid: "urn:ietf:params:rtp-hdrext:sdes:mid",
  rid: "urn:ietf:params:rtp-hdrext:sdes:rtp-stream-id",
  transportSequence: "http://www.ietf.org/id/draft-holmer-rmcat-transport-wide-cc-extensions-01",
} as const;

/** A track that the publisher sends, as it was agreed on. */
export type NegotiatedTrack = {
  kind: "audio" | "video";
  mid: string;
  payloadType: number;
  clockRate: number;
  /** Identifiers of header extensions; null for those that were not agreed on. */
  extensions: { mid: number | null; rid: number | null; transportSequence: number | null };
  /** Packets that are lost may be requested again. */
  hasNack: boolean;
  /** Parameter sets of H.264 in the offer, in base64 and separated by commas; empty without. */
  parameterSets: string;
  /** Layers of simulcast. */
  rids: readonly string[];
};

/** `media`: the tracks in the order of the offer's descriptions; null for those that are declined. */
export type Negotiated = { offer: Offer; media: readonly (NegotiatedTrack | null)[] };

const CODECS = { audio: "Opus", video: "H.264" } as const;

/** Chooses the first audio and the first video that the publisher sends. Throws OfferNotAcceptable. */
export function negotiate(offer: Offer): Negotiated {
  const chosen = new Set<OfferedMedia["kind"]>();
  const media = offer.media.map((one) => {
    if (one.kind === "other" || !one.isSent || chosen.has(one.kind)) return null;
    chosen.add(one.kind);
    return trackOf(one.kind, one);
  });
  const accepted = media.flatMap((one) => one ?? []);
  if (accepted.length === 0) throw new OfferNotAcceptable("The offer sends neither audio nor video.");
  if (offer.setup === "passive")
    throw new OfferNotAcceptable(
      'The offer has "a=setup:passive". Offer "actpass": this server waits for the handshake.',
    );
  if (!offer.hasRtcpMux) throw new OfferNotAcceptable("The offer lacks rtcp-mux, which this server needs.");
  if (accepted.length > 1 && !accepted.every(({ mid }) => offer.bundle.includes(mid)))
    throw new OfferNotAcceptable("The offer has no BUNDLE group of its audio and video, which this server needs.");
  return { offer, media };
}

function trackOf(kind: "audio" | "video", media: OfferedMedia): NegotiatedTrack {
  const codec = kind === "audio" ? opusOf(media.codecs) : h264Of(media.codecs);
  if (!codec)
    throw new OfferNotAcceptable(
      `The ${kind} of the offer has no ${CODECS[kind]}, which is the only codec that is accepted. Choose ${CODECS[kind]} in the encoder.`,
    );
  const { payloadType, clockRate, parameters } = codec;
  const id = (uri: string) => media.extensions.get(uri) ?? null;
  const has = (feedback: string) =>
    [String(payloadType), "*"].some((type) => media.feedback.get(type)?.has(feedback) ?? false);
  return {
    kind,
    mid: media.mid,
    payloadType,
    clockRate,
    rids: kind === "video" ? media.rids : [],
    extensions: {
      mid: id(EXTENSION.mid),
      rid: id(EXTENSION.rid),
      transportSequence: has("transport-cc") ? id(EXTENSION.transportSequence) : null,
    },
    hasNack: has("nack"),
    parameterSets: parameters.get("sprop-parameter-sets") ?? "",
  };
}

const opusOf = (codecs: readonly Codec[]) =>
  codecs.find(({ name, clockRate }) => name === "opus" && clockRate === 48_000);

/** packetization-mode 1 (RFC 6184, 6.3) is what encoders send; mode 0 is a part of it. 2 interleaves. */
function h264Of(codecs: readonly Codec[]): Codec | undefined {
  const mode = ({ parameters }: Codec) => parameters.get("packetization-mode") ?? "0";
  const all = codecs.filter(({ name, clockRate }) => name === "h264" && clockRate === 90_000);
  return all.find((codec) => mode(codec) === "1") ?? all.find((codec) => mode(codec) === "0");
}
