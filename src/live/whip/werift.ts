/** The library for DTLS and SRTP. Its module is loaded only by a server that receives WHIP. */
export type Werift = typeof import("werift");
