import type { ReplicatedMessage } from "./live-streams.ts";

/** Parts of more segments than these are not in playlists any more. */
const SEGMENTS_WITH_PARTS = 12;
/** Pruning reads all messages of a stream. */
const PRUNE_EVERY = 50;

type Logged = { messages: ReplicatedMessage[]; dvrSeconds: number; added: number };

/** What another process needs to serve the running streams: the reports of each, without those that have no effect any more. */
export class StreamLog {
  readonly #streams = new Map<string, Logged>();

  add(message: ReplicatedMessage): void {
    if (message.type === "opened") {
      const { name, channel } = message.opened;
      this.#streams.set(name, { messages: [message], dvrSeconds: channel.dvrSeconds, added: 0 });
      return;
    }
    // Reported every two seconds.
    if (message.type === "simulcast") return;
    const { stream } = message;
    if (message.type === "ended") return void this.#streams.delete(stream);
    const logged = this.#streams.get(stream);
    // The next report of it replaces it.
    if (!logged || message.type === "health") return;
    logged.messages.push(message);
    if (++logged.added % PRUNE_EVERY === 0) logged.messages = pruned(logged);
  }

  clear(): void {
    this.#streams.clear();
  }

  *all(): Generator<ReplicatedMessage> {
    for (const { messages } of this.#streams.values()) yield* messages;
  }
}

/** A segment needs to be known as long as playlists list it, and one more: numbers are consecutive. */
function pruned({ messages, dvrSeconds }: Logged): ReplicatedMessage[] {
  const last = messages.findLast((message) => message.type === "segment");
  if (!last) return messages;
  const { segment, startSeconds } = last.segment;
  const oldest = startSeconds - 2 * Math.max(dvrSeconds, 72);
  const encoded = messages.findLast((message) => message.type === "encoded");
  const renditions = messages.findLast(
    (message) => message.type === "renditions" && message.renditions.startSeconds < oldest,
  );
  return messages.filter((message) => {
    switch (message.type) {
      case "encoded":
        return message === encoded;
      case "renditions":
        return message.renditions.startSeconds >= oldest || message === renditions;
      case "part":
        return message.part.segment > segment - SEGMENTS_WITH_PARTS;
      case "gap":
        return message.gap.startSeconds >= oldest;
      case "caption":
        return message.caption.endMs >= oldest * 1000;
      case "segment":
        return message.segment.startSeconds >= oldest;
      default:
        return true;
    }
  });
}
