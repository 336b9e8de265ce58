// What sessions on a device count: their tensors there, and what passed over the bus.

const ZERO = {
  // Tensors that the package made and destroyed, and those that are there.
  created: 0,
  destroyed: 0,
  live: 0,
  liveBytes: 0,
  // How often a run found a tensor of an earlier one where it needed one.
  reused: 0,
  // Dispatches whose tensors are not those of the graph's dispatch before.
  rebinds: 0,
  dispatches: 0,
  writes: 0,
  writeBytes: 0,
  reads: 0,
  readBytes: 0,
  builds: 0,
  buildMilliseconds: 0,
};

export type CounterValues = Readonly<typeof ZERO>;
type Counter = keyof typeof ZERO;

export interface Stats {
  // Of all sessions that ever were.
  readonly total: CounterValues;
  // Of those that are not released, in the order of their creation.
  readonly sessions: ReadonlyArray<CounterValues & {readonly logId: string}>;
}

const total = {...ZERO};
const open = new Set<Counters>();

// The counters of one session.
export class Counters {
  readonly #values = {...ZERO};

  constructor(readonly logId: string) {
    open.add(this);
  }

  get values(): CounterValues {
    return this.#values;
  }

  add(counter: Counter, amount = 1): void {
    this.#values[counter] += amount;
    total[counter] += amount;
  }

  // They go on counting after that: tensors outlive sessions.
  close(): void {
    open.delete(this);
  }
}

export function stats(): Stats {
  return {
    total: {...total},
    sessions: Array.from(open, ({logId, values}) => ({logId, ...values})),
  };
}
