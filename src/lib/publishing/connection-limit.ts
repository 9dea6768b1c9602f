import { networkOf } from "#lib/network";

export type ConnectionLimits = {
  /** Connections of publishers in all. */
  connections: number;
  /** Connections of publishers from one address. */
  connectionsPerAddress: number;
};

/**
 * Counts the connections of publishers, in all and by the network of their address. Until a publish is accepted, a connection
 * has a place of `PendingConnections` only: wrong keys must not take the places of publishers at the same address.
 * @example
 * const limit = new ConnectionLimit({ connections: 100, connectionsPerAddress: 1 });
 * const end = limit.admit("192.0.2.7");
 * limit.isFull("192.0.2.7") // => true
 * end();
 * limit.isFull("192.0.2.7") // => false
 */
export class ConnectionLimit {
  readonly #limits: ConnectionLimits;
  readonly #perNetwork = new Map<string, number>();
  #count = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Whether another connection would exceed a limit. */
  isFull(address: string): boolean {
    const { connections, connectionsPerAddress } = this.#limits;
    return this.#count >= connections || this.of(address) >= connectionsPerAddress;
  }

  /** Counts a connection whose publish is accepted. Returns a function to call once at its end; null when it exceeds a limit. */
  admit(address: string): (() => void) | null {
    const network = networkOf(address);
    if (this.isFull(address)) return null;
    this.#count++;
    this.#perNetwork.set(network, this.of(address) + 1);
    return () => {
      this.#count--;
      const rest = this.of(address) - 1;
      if (rest === 0) this.#perNetwork.delete(network);
      else this.#perNetwork.set(network, rest);
    };
  }

  /** Connections of the network of an address. */
  of(address: string): number {
    return this.#perNetwork.get(networkOf(address)) ?? 0;
  }
}
