// Settings of the whole package. They are read when they are needed: most of them when the first
// session is created.
import {type Stats, stats} from './counters.js';
import type {GlobalType} from './global-type.js';
import {API_VERSION, TENON_VERSION} from './version.js';

const LOG_LEVELS = ['verbose', 'info', 'warning', 'error', 'fatal'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export declare namespace Env {
  // A folder: a prefix that is put in front of a file's name, so it ends in '/'.
  type WasmPathPrefix = string;

  interface WasmFilePaths {
    // The address of the WebAssembly module.
    wasm?: URL | string;
    // The address of onnxruntime-web's loader. This package has none, and ignores it.
    mjs?: URL | string;
  }

  type WasmPrefixOrFilePaths = WasmPathPrefix | WasmFilePaths;

  interface WebAssemblyFlags {
    // The number of threads; 0 lets the package choose. Default: 0.
    numThreads?: number;
    // Which SIMD instructions may be used. Default: true.
    simd?: boolean | 'fixed' | 'relaxed';
    // The older name of env.trace.
    trace?: boolean;
    // After how many milliseconds the loading of the module fails; 0 is never. Default: 0.
    initTimeout?: number;
    // Where the module is. Default: beside the code.
    wasmPaths?: WasmPrefixOrFilePaths;
    // The bytes of the module; if they are set, nothing is loaded.
    wasmBinary?: ArrayBufferLike | Uint8Array;
    // Whether sessions run in a worker of their own. Default: false.
    proxy?: boolean;
  }

  // The settings of onnxruntime-web's WebGL provider, which this package does not have.
  interface WebGLFlags {
    contextId?: 'webgl' | 'webgl2';
    readonly context: WebGLRenderingContext;
    matmulMaxBatchSize?: number;
    textureCacheMode?: 'initializerOnly' | 'full';
    pack?: boolean;
    async?: boolean;
  }

  interface WebGpuProfilingDataV1TensorMetadata {
    dims: readonly number[];
    dataType: string;
  }

  interface WebGpuProfilingDataV1 {
    version: 1;
    inputsMetadata: readonly WebGpuProfilingDataV1TensorMetadata[];
    outputsMetadata: readonly WebGpuProfilingDataV1TensorMetadata[];
    kernelId: number;
    kernelType: string;
    kernelName: string;
    programName: string;
    startTime: number;
    endTime: number;
  }

  type WebGpuProfilingData = WebGpuProfilingDataV1;

  // The settings of the WebGPU provider.
  interface WebGpuFlags {
    profilingMode?: 'off' | 'default';
    profiling: {
      mode?: 'off' | 'default';
      ondata?: (data: WebGpuProfilingData) => void;
    };
    powerPreference?: 'low-power' | 'high-performance';
    forceFallbackAdapter?: boolean;
    adapter: GlobalType<'GPUAdapter'>;
    get device(): Promise<GlobalType<'GPUDevice'>>;
    set device(value: GlobalType<'GPUDevice'>);
    validateInputContent?: boolean;
  }
}

export type WasmFlags = Env.WebAssemblyFlags;

// Settings that onnxruntime-web does not have. All are read when they are needed.
export interface TenonFlags {
  // The bytes of MLTensors that a WebNN context keeps for sessions that are not running. Default:
  // all.
  mlTensorCacheBytes?: number;
  // The number of sets of feed shapes for which a session keeps WebNN graphs. Default: 8.
  maxShapeVariants?: number;
  // The counters of the sessions of the WebNN provider.
  readonly stats: () => Stats;
  // New memory of the WebAssembly module, with any content. Arrays over it are fed where they are,
  // and written there if they are given as fetches. It stays until `free`.
  readonly allocate?: (byteLength: number) => Promise<Uint8Array>;
  // Gives memory of `allocate` back. Arrays over it must not be used any more.
  readonly free?: (memory: Uint8Array) => void;
}

export interface Env {
  // From which severity on messages are logged. Default: 'warning'.
  logLevel?: LogLevel;
  debug?: boolean;
  // Whether TRACE and its relatives write to the browser's timeline.
  trace?: boolean;
  readonly versions: {
    // The versions of onnxruntime-common and -web whose API this is.
    readonly common: string;
    readonly web?: string;
    readonly node?: string;
    readonly 'react-native'?: string;
    readonly tenon?: string;
  };
  readonly wasm: Env.WebAssemblyFlags;
  readonly webgl: Env.WebGLFlags;
  readonly webgpu: Env.WebGpuFlags;
  [name: string]: unknown;
}

let logLevel: LogLevel = 'warning';

export const env: Env & {readonly tenon: TenonFlags} = {
  wasm: {},
  webgl: {} as Env.WebGLFlags,
  webgpu: {profiling: {}} as Env.WebGpuFlags,
  versions: {common: API_VERSION, tenon: TENON_VERSION},
  tenon: {stats},
  get logLevel(): LogLevel {
    return logLevel;
  },
  set logLevel(level: LogLevel | undefined) {
    if (level === undefined) return;
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
