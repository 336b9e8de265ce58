// Settings of the whole package, read when its first session is created.
import {type Stats, stats} from './counters.js';

const LOG_LEVELS = ['verbose', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export interface WasmFlags {
  // The folder of tenon.wasm, which ends in '/', or its own address. Default: the folder of the
  // code.
  wasmPaths?: string | {readonly wasm?: string | URL};
  // Its bytes; if they are set, nothing is loaded.
  wasmBinary?: ArrayBufferLike | Uint8Array;
  // The number of threads; 0 lets the package choose. Default: 0.
  numThreads?: number;
  // Which SIMD instructions may be used. Default: true.
  simd?: boolean | 'fixed' | 'relaxed';
}

// Settings that onnxruntime-web does not have. All are read when they are needed.
export interface TenonFlags {
  // The bytes of MLTensors that a WebNN context keeps for sessions that are not running. Default:
  // all.
  mlTensorCacheBytes?: number;
  // The number of sets of feed shapes for which a session keeps WebNN graphs. Default: 8.
  maxShapeVariants?: number;
  // The counters of the sessions of the WebNN provider.
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

// The level as the core's number.
export function logSeverity(): number {
  return LOG_LEVELS.indexOf(logLevel);
}
