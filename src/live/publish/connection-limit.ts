import { networkOf } from "../../lib/network.ts";

export type ConnectionLimits = {
  /** Connections of publishers in all. */
  connections: number;
  /** Connections of publishers from one address. */
  connectionsPerAddress: number;
};

/** Counts the connections of publishers, from their request to publish on, in all and by the network of their address. */
export class ConnectionLimit {
  readonly #limits: ConnectionLimits;
  readonly #perNetwork = new Map<string, number>();
  #count = 0;

  constructor(limits: ConnectionLimits) {
    this.#limits = limits;
  }

  /** Counts a connection. Returns a function to call once at its end; null when it exceeds a limit. */
  admit(address: string): (() => void) | null {
    const network = networkOf(address);
    const { connections, connectionsPerAddress } = this.#limits;
    if (this.#count >= connections || this.of(address) >= connectionsPerAddress) return null;
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
