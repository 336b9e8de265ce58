// The device of all contexts of one ML object: its limits, its speed, and its faults.
import {limitsOf, type LimitsOptions, type MLOpSupportLimits} from './limits.js';

// Calls that fail, counted from 1 over all contexts of the ML object.
export interface FaultOptions {
  createTensor?: number | readonly number[]; // rejects with UnknownError
  readTensor?: number | readonly number[]; // rejects with UnknownError
  writeTensor?: number | readonly number[]; // throws an UnknownError
  build?: number | readonly number[]; // rejects with OperationError
  // The context is lost instead of running this dispatch.
  loseAtDispatch?: number | readonly number[];
}

export interface DeviceOptions {
  // No context can be created: createContext rejects with NotSupportedError.
  isAbsent?: boolean;
  // The value of `accelerated` of a context, unless the application requested a processor.
  accelerated?: boolean;
  limits?: LimitsOptions;
  // Milliseconds for each step of a timeline.
  stepDuration?: number;
  // Additional milliseconds for a dispatch with other tensors than the graph's last one.
  rebindDuration?: number;
  faults?: FaultOptions;
}

export class Device {
  readonly limits: MLOpSupportLimits;
  readonly isAbsent: boolean;
  readonly accelerated: boolean;
  readonly stepDuration: number;
  readonly rebindDuration: number;
  readonly #faults: FaultOptions;
  readonly #calls = new Map<keyof FaultOptions, number>();

  constructor(options: DeviceOptions = {}) {
    this.limits = limitsOf(options.limits);
    this.isAbsent = options.isAbsent ?? false;
    this.accelerated = options.accelerated ?? false;
    this.stepDuration = options.stepDuration ?? 0;
    this.rebindDuration = options.rebindDuration ?? 0;
    this.#faults = options.faults ?? {};
  }

  // Counts a call. Returns whether it shall fail.
  fails(call: keyof FaultOptions): boolean {
    const count = (this.#calls.get(call) ?? 0) + 1;
    this.#calls.set(call, count);
    const failing = this.#faults[call] ?? [];
    return typeof failing === 'number' ? failing === count : failing.includes(count);
  }
}
