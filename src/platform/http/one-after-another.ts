import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { suspect } from "./read-in-pieces.ts";

/** Requests of one connection that may wait; with more, nothing more is read from it. */
const MAX_WAITING = 16;

type Exchange = { incoming: IncomingMessage; outgoing: ServerResponse };
type Waiting = { queue: Exchange[]; isWatching: boolean };
function pause(socket: Socket, queue: readonly Exchange[]): void {
  suspect(socket);
  if (queue.length >= MAX_WAITING) socket.pause();
}

/** Node's response in progress. It is undocumented, and the only way to find it without a listener for each response. */
type Sending = Socket & { _httpMessage?: ServerResponse | null };

/**
 * Processes the requests of one connection one after another: the next one starts when the kernel has taken the response
 * of the previous one. Node would start all requests that it has read, a thousand of the smallest ones at once, and keep
 * their responses in memory. What a closed connection had requested is given up.
 */
export function oneAfterAnother(handle: RequestListener): RequestListener {
  const connections = new WeakMap<Socket, Waiting>();

  function wait(exchange: Exchange, current: ServerResponse): void {
    const { socket } = exchange.incoming;
    const waiting = connections.get(socket) ?? newWaiting(socket);
    const { queue } = waiting;
    queue.push(exchange);
    // Node resumes reading at the end of each request that it parses, so reading is paused after all of them.
    if (queue.length === MAX_WAITING) process.nextTick(pause, socket, queue);
    if (!waiting.isWatching) startNextAfter(current, socket, waiting);
  }

  function newWaiting(socket: Socket): Waiting {
    const waiting: Waiting = { queue: [], isWatching: false };
    connections.set(socket, waiting);
    // Node also resumes reading after each response.
    socket.on("resume", () => {
      if (waiting.queue.length >= MAX_WAITING) socket.pause();
    });
    socket.once("close", () => {
      // Node emits no event for a response that was never sent.
      for (const { outgoing } of waiting.queue.splice(0)) outgoing.emit("close");
    });
    return waiting;
  }

  function startNextAfter(current: ServerResponse, socket: Socket, waiting: Waiting): void {
    waiting.isWatching = true;
    current.once("close", () => {
      const next = socket.writable ? waiting.queue.shift() : undefined;
      waiting.isWatching = false;
      if (!next) return;
      handle(next.incoming, next.outgoing);
      // After the handler, whose own listeners are called first then.
      if (waiting.queue.length > 0) startNextAfter(next.outgoing, socket, waiting);
      if (waiting.queue.length === MAX_WAITING - 1) socket.resume();
    });
  }

  return (incoming, outgoing) => {
    const current = (incoming.socket as Sending)._httpMessage;
    // Node assigns the connection to a response when the previous one has finished.
    if (!current || current === outgoing) handle(incoming, outgoing);
    else wait({ incoming, outgoing }, current);
  };
}
