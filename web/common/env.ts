// Settings of the whole package, read when its first session is created.
import {type Stats, stats} from './counters.js';

const LOG_LEVELS = ['verbose', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface WasmFlags {
  // Where tenon.wasm is: a folder ending in '/', or its own address. Default: beside the code.
  wasmPaths?: string | {readonly wasm?: string | URL};
  // Its bytes, which are then not loaded.
  wasmBinary?: ArrayBufferLike | Uint8Array;
}

// What Tenon has beside the settings of onnxruntime-web. All are read when they are needed.
export interface TenonFlags {
  // How many bytes of MLTensors a WebNN context keeps for sessions that have no run. Default: all.
  mlTensorCacheBytes?: number;
  // For how many sets of feed shapes a session keeps WebNN graphs. Default: 8.
  maxShapeVariants?: number;
  // What sessions of the WebNN provider did so far.
  readonly stats: () => Stats;
}

let logLevel: LogLevel = 'warning';

export const env = {
  wasm: {} as WasmFlags,
  tenon: {stats} as TenonFlags,
  get logLevel(): LogLevel {
    return logLevel;
  },
  set logLevel(level: LogLevel) {
    if (!LOG_LEVELS.includes(level)) {
      throw new Error(`env.logLevel: expected one of ${LOG_LEVELS.join(', ')}, got '${level}'`);
    }
    logLevel = level;
  },
};

// The level as the number that the core knows.
export function logSeverity(): number {
  return LOG_LEVELS.indexOf(logLevel);
}
