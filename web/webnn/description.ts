// The core's description of the partitions of a session.
import type {CoreSession, SessionDescription} from '../src/core-session.js';

export type ValueSource =
  | {readonly feed: string}
  | {readonly partition: number; readonly output: number}
  | 'host';

export interface PartitionDescription {
  readonly name: string;
  // Names its nodes for the option `excluded_partitions`.
  readonly firstNode: string;
  // Whether its shapes are known before a run.
  readonly isStatic: boolean;
  readonly inputs: ReadonlyArray<{readonly name: string; readonly source: ValueSource}>;
  readonly outputs: ReadonlyArray<{
    readonly name: string;
    // Whether nodes on the CPU read it.
    readonly host: boolean;
    // The outputs of the model that have this value.
    readonly fetches: readonly string[];
  }>;
}

export interface PartitionedDescription extends SessionDescription {
  readonly partitions: readonly PartitionDescription[];
  // The inputs of the model that nodes on the CPU read.
  readonly hostFeeds: readonly string[];
}

export function describePartitions(session: CoreSession): PartitionedDescription {
  return session.description as PartitionedDescription;
}
