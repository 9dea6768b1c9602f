import { open } from "node:fs/promises";

/** System files that a dynamic program or a script needs: loader, libraries, interpreters. */
export const SYSTEM_PATHS = [
  ...["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"],
  ...["/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/ld-musl-x86_64.path", "/etc/alternatives"],
];

/** Additional files for hardware encoders; `/proc` is not among them. */
export const ENCODER_PATHS = ["/sys"];
export const ENCODER_DEVICES = [
  ...["/dev/dri", "/dev/kfd", "/dev/nvidia0", "/dev/nvidia1", "/dev/nvidia2", "/dev/nvidia3", "/dev/nvidiactl"],
  ...["/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"],
];

const PT_INTERP = 3;
const HEADER_BYTES = 64;

/** Whether the program at `path` is a static ELF64 file, which needs no system files. */
export async function isStatic(path: string): Promise<boolean> {
  const file = await open(path);
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    await file.read(header, 0, HEADER_BYTES, 0);
    const isElf64 = header.readUInt32BE(0) === 0x7f454c46 && header[4] === 2 && header[5] === 1;
    if (!isElf64) return false;
    // ELF-64 object file format, program header table: e_phoff, e_phentsize, e_phnum; p_type is the first field of an
    // entry.
    const offset = Number(header.readBigUInt64LE(32));
    const size = header.readUInt16LE(54);
    const count = header.readUInt16LE(56);
    const table = Buffer.alloc(size * count);
    const { bytesRead } = await file.read(table, 0, table.length, offset);
    if (bytesRead < table.length || size < 4) return false;
    return !Array.from({ length: count }, (_, index) => table.readUInt32LE(index * size)).includes(PT_INTERP);
  } finally {
    await file.close();
  }
}
