// The counters of sessions on a device: their tensors, and the bytes that were transferred.

const ZERO = {
  // Tensors that the package made and destroyed, and those that are alive.
  created: 0,
  destroyed: 0,
  live: 0,
  liveBytes: 0,
  // How often a run reused a tensor of an earlier run.
  reused: 0,
  // Dispatches whose tensors differ from those of the graph's previous dispatch.
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
  // Of all sessions, also released ones.
  readonly total: CounterValues;
  // Of the sessions that are not released, in the order of their creation.
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

  // They go on counting after that, because tensors outlive sessions.
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
