export type Labels = Readonly<Record<string, string>>;
export type Sample = { labels?: Labels; value: number | null; suffix?: string };
export type MetricFamily = {
  name: string;
  help: string;
  type: "counter" | "gauge" | "histogram" | "summary";
  samples: readonly Sample[];
};

/** The text exposition format of Prometheus (version 0.0.4). Null values are left out. */
export function exposition(families: readonly MetricFamily[]): string {
  const lines: string[] = [];
  for (const { name, help, type, samples } of families) {
    const known = samples.filter((sample) => sample.value !== null && !Number.isNaN(sample.value));
    if (known.length === 0) continue;
    lines.push(`# HELP ${name} ${help.replaceAll("\\", "\\\\").replaceAll("\n", "\\n")}`, `# TYPE ${name} ${type}`);
    for (const { labels = {}, value, suffix = "" } of known)
      lines.push(`${name}${suffix}${labelText(labels)} ${value}`);
  }
  return `${lines.join("\n")}\n`;
}

function labelText(labels: Labels): string {
  const all = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n")}"`,
  );
  return all.length === 0 ? "" : `{${all.join(",")}}`;
}

/** Counts values into buckets with the inclusive upper `bounds`. */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;

  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#counts = new Array(bounds.length + 1).fill(0);
  }

  note(value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] as number)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  samples(labels: Labels): Sample[] {
    let count = 0;
    const buckets = this.#counts.map((each, at): Sample => {
      count += each;
      const le = at < this.#bounds.length ? String(this.#bounds[at]) : "+Inf";
      return { suffix: "_bucket", labels: { ...labels, le }, value: count };
    });
    return [...buckets, { suffix: "_sum", labels, value: this.#sum }, { suffix: "_count", labels, value: count }];
  }
}
