import { expect, test } from "vitest";
import { localWorkerCount } from "#platform/config/local-worker-count.ts";

const GIB = 2 ** 30;
const counted = (processors: number, gib: number, workers?: number) =>
  localWorkerCount({ workers }, { processors, memoryBytes: gib * GIB });

test.each([
  [1, 1, 1],
  [2, 24, 1],
  [4, 16, 1],
  [7, 16, 1],
  [8, 16, 2],
  [16, 64, 4],
  [16, 8, 2],
  [96, 384, 24],
  [1024, 4096, 64],
])("of %i processors and %i GiB of memory: %i workers", (processors, gib, workers) => {
  expect(counted(processors, gib).count).toBe(workers);
});

test("the reason names what limits them", () => {
  expect(counted(16, 64).reason).toBe("one for each 4 of 16 processors; at least one");
  expect(counted(16, 8).reason).toContain("8.0 GiB of memory");
});

test.each([0, 1, 9])("a setting of %i is obeyed, and named", (workers) => {
  expect(counted(16, 64, workers)).toEqual({ count: workers, reason: expect.stringContaining("VODBOX_WORKERS") });
});
