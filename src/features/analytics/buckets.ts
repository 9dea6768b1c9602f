import type { Interval, Range } from "./range.ts";

const HOURS = { hour: 1, day: 24 } as const;

/** How hours form the buckets of a series: single hours, or days that begin at midnight of a zone. */
export class Buckets {
  /** Hours of a bucket. */
  readonly size: number;
  /** Hours that the zone is ahead of UTC. */
  readonly offset: number;
  constructor(interval: Interval, utcOffsetHours: number) {
    this.size = HOURS[interval];
    this.offset = utcOffsetHours;
  }

  indexOf(hour: number): number {
    return Math.floor((hour + this.offset) / this.size);
  }

  firstHourOf(index: number): number {
    return index * this.size - this.offset;
  }

  /** The buckets that a range overlaps, without gaps. */
  *indexesOf({ fromHour, untilHour }: Range): Generator<number> {
    for (let index = this.indexOf(fromHour); this.firstHourOf(index) < untilHour; index++) yield index;
  }
}
