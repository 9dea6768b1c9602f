import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { lineOf, type Started, watched } from "./process.ts";

/** One message of sd_notify(3), as the service manager receives it. */
export type Notice = { at: number; state: Record<string, string> };

/** Like systemd's: a datagram socket of AF_UNIX, with credentials. Received descriptors (BARRIER=1) are closed. */
const SOCKET = `
import json, os, socket, struct, sys
name = sys.argv[1]
sock = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
sock.bind("\\0" + name[1:] if name.startswith("@") else name)
print("bound", flush=True)
while True:
    data, ancillary, _, _ = sock.recvmsg(65536, 1024)
    for level, kind, content in ancillary:
        if kind == socket.SCM_RIGHTS:
            for (fd,) in struct.iter_unpack("i", content):
                os.close(fd)
    print(json.dumps(data.decode()), flush=True)
`;

/** Binds `address`: a path, or an abstract name after an @. Closed with the test. */
export const notifySocket = async (address: string): Promise<Notice[]> => (await openNotifySocket(address)).notices;

/** The same with its process, for a hook, which ends it. */
export async function openNotifySocket(address: string): Promise<{ notices: Notice[]; program: Started }> {
  const program = watched(spawn("python3", ["-c", SOCKET, address], { stdio: ["ignore", "pipe", "pipe"] }));
  const notices: Notice[] = [];
  createInterface({ input: program.child.stdout as NodeJS.ReadableStream }).on("line", (line) => {
    if (!line.startsWith('"')) return;
    const pairs = (JSON.parse(line) as string).split("\n").filter(Boolean);
    const state = Object.fromEntries(pairs.map((pair) => pair.split(/=(.*)/s).slice(0, 2)));
    if (!("BARRIER" in state)) notices.push({ at: performance.now(), state });
  });
  await lineOf(program, /^bound$/m);
  return { notices, program };
}
