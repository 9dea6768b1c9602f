import type { Command } from "commander";

/** How a server treats streams to a channel. A running one keeps what it began with. */
export const withStreams = (command: Command): Command =>
  command
    .option("--record <on|off>", "streams become assets; on for new channels")
    .option("--enabled <on|off>", "whether publishers are accepted; off ends a running stream too")
    .option("--reconnect-seconds <N>", "how long a stream waits for a publisher whose connection broke; default: 30")
    .option("--max-duration-seconds <N>", "when a stream is ended at the latest, 60 to 43200; '' for no limit")
    .option("--starts-at <TIME>", "when the next stream is announced for, such as 2027-01-31T20:00:00Z; '' for none")
    .option("--dvr-seconds <N>", "how far viewers can seek back, up to 43200; 3600 for new channels")
    .option("--low-latency <on|off>", "low-latency HLS; on for new channels")
    .option("--takeover <on|off>", "a second publisher replaces the first one; off for new channels")
    .option("--encoding-profile <NAME>", 'encoding profile of additional renditions; "" for none')
    .option("--captions <LIST>", 'languages to transcribe recordings in, such as en,pt-BR; "" for none')
    .option("--captions-live <LIST>", 'languages to recognize the speech of running streams in; "" for none');
