import { readFileSync } from "node:fs";
import { createServer, type ListenOptions, type Server } from "node:net";

const FIRST = 10_000;
/** The kernel gives ports from here on to outgoing connections, and to servers that ask for any port (ip(7)). */
function firstEphemeral(): number {
  const [first = 0] = readFileSync("/proc/sys/net/ipv4/ip_local_port_range", "latin1").split(/\s/).map(Number);
  return first > FIRST + 1000 ? first : 32_768;
}

/** Ports in the range to which fetch and browsers do not connect (Fetch Standard, "port blocking"). */
const BLOCKED = new Set([10_080]);

let tried = 0;

/**
 * A port on loopback that stays free until it is used, also between two uses: it is below the ports that the kernel
 * chooses, and reserved for this process against all others that call this function.
 */
export async function freePort(): Promise<number> {
  const count = firstEphemeral() - FIRST;
  while (tried < count) {
    const port = FIRST + ((process.pid * 101 + tried++) % count);
    if (BLOCKED.has(port)) continue;
    // An abstract socket (unix(7)) is in the same network namespace as the port, and ends with its process.
    const lock = await listening({ path: `\0vodbox-port-${port}` });
    if (!lock) continue;
    const probe = await listening({ port, host: "127.0.0.1" });
    if (probe) {
      await new Promise((resolve) => probe.close(resolve));
      lock.unref();
      return port;
    }
    lock.close();
  }
  throw new Error(`Each port from ${FIRST} to ${FIRST + count - 1} is in use.`);
}

function listening(options: ListenOptions): Promise<Server | null> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(null));
    server.listen(options, () => resolve(server));
  });
}
