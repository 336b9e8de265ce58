// InferenceSession: the session as an application sees it, for every backend. Arguments are checked
// here.
import {createHandler, type InferenceSessionHandler} from './backend.js';
import {didYouMean} from './nearest.js';
import {checkLength, Tensor} from './tensor.js';

type Options = Record<string, unknown>;

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}

function checkOptions(options: unknown): Options {
  if (options === undefined) return {};
  if (isObject(options)) return options;
  throw new TypeError(`options: expected an object, got ${String(options)}`);
}

function isBuffer(value: unknown): value is ArrayBufferLike {
  return (
    value instanceof ArrayBuffer ||
    (typeof SharedArrayBuffer !== 'undefined' && value instanceof SharedArrayBuffer)
  );
}

// The part of a buffer that was passed to create(), and its options.
function viewOf(buffer: ArrayBufferLike, rest: unknown[]): [Uint8Array, Options] {
  if (typeof rest[0] !== 'number') return [new Uint8Array(buffer), checkOptions(rest[0])];
  const [byteOffset, byteLength = buffer.byteLength - byteOffset] = rest as number[];
  if (!Number.isSafeInteger(byteOffset) || byteOffset < 0 || byteOffset > buffer.byteLength) {
    throw new RangeError(`byteOffset: expected 0 to ${buffer.byteLength}, got ${byteOffset}`);
  }
  if (typeof byteLength !== 'number') {
    throw new TypeError(`byteLength: expected a number, got ${typeof byteLength}`);
  }
  const most = buffer.byteLength - byteOffset;
  if (!Number.isSafeInteger(byteLength) || byteLength < 0 || byteLength > most) {
    throw new RangeError(`byteLength: expected 0 to ${most}, got ${byteLength}`);
  }
  return [new Uint8Array(buffer, byteOffset, byteLength), checkOptions(rest[2])];
}

function readModel(model: unknown, rest: unknown[]): [string | Uint8Array, Options] {
  if (typeof model === 'string' || model instanceof Uint8Array) {
    return [model, checkOptions(rest[0])];
  }
  if (isBuffer(model)) return viewOf(model, rest);
  throw new TypeError('model: expected a path, a URL, a Uint8Array or an ArrayBuffer');
}

export class InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly #handler: InferenceSessionHandler;

  private constructor(handler: InferenceSessionHandler) {
    this.#handler = handler;
    this.inputNames = handler.inputMetadata.map(({name}) => name);
    this.outputNames = handler.outputMetadata.map(({name}) => name);
  }

  // Loads a model: a path in Node, a URL elsewhere, or its bytes.
  static create(
    model: string | Uint8Array | ArrayBufferLike,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  static create(
    model: ArrayBufferLike,
    byteOffset: number,
    byteLength?: number,
    options?: InferenceSession.SessionOptions,
  ): Promise<InferenceSession>;
  static async create(model: unknown, ...rest: unknown[]): Promise<InferenceSession> {
    const [source, options] = readModel(model, rest);
    return new InferenceSession(await createHandler(source, options));
  }

  get inputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.#handler.inputMetadata;
  }

  get outputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.#handler.outputMetadata;
  }

  // Runs the model once. Without fetches the result has all outputs. A tensor among the fetches is
  // written to and returned itself. The arguments may be changed once the call has returned, except
  // MLTensors and tensors among the fetches.
  async run(
    feeds: InferenceSession.FeedsType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  async run(
    feeds: InferenceSession.FeedsType,
    fetches: InferenceSession.FetchesType,
    options?: InferenceSession.RunOptions,
  ): Promise<InferenceSession.ReturnType>;
  async run(feeds: unknown, second?: unknown, third?: unknown): Promise<Record<string, Tensor>> {
    this.#checkFeeds(feeds);
    const fetches = this.#readFetches(second);
    const options = checkOptions(fetches === undefined ? second : third);
    const all = Object.fromEntries(this.outputNames.map((name) => [name, null]));
    return this.#handler.run(feeds, fetches ?? all, options);
  }

  // A trace starts when the session is created, if the option enableProfiling requests it.
  startProfiling(): void {
    this.#handler.startProfiling();
  }

  // Ends the session's trace and prints it to the console, an event per line.
  endProfiling(): void {
    this.#handler.endProfiling();
  }

  release(): Promise<void> {
    return this.#handler.dispose();
  }

  #checkFeeds(feeds: unknown): asserts feeds is Record<string, Tensor> {
    if (!isObject(feeds) || feeds instanceof Tensor || Array.isArray(feeds)) {
      throw new TypeError('feeds: expected an object with a tensor for each input name');
    }
    for (const name of this.inputNames) {
      if (feeds[name] === undefined) throw new Error(`feeds: input '${name}' is missing`);
    }
    for (const [name, value] of Object.entries(feeds)) {
      if (!this.inputNames.includes(name)) {
        throw new Error(`feeds: there is no input '${name}'${didYouMean(name, this.inputNames)}`);
      }
      if (!(value instanceof Tensor)) throw new TypeError(`feeds: '${name}' is no tensor`);
      checkLength(`feeds: input '${name}'`, value);
    }
  }

  // The second argument of run() as fetches; undefined if there is none or it is the options.
  #readFetches(second: unknown): Record<string, Tensor | null> | undefined {
    if (second === undefined) return undefined;
    if (!isObject(second) || second instanceof Tensor) {
      throw new TypeError('fetches: expected output names, or an object with tensors or null');
    }
    if (Array.isArray(second)) return this.#readFetchNames(second);
    if (!this.outputNames.some((name) => name in second)) return undefined;
    for (const [name, value] of Object.entries(second)) {
      this.#checkFetchName(name);
      if (value !== null && !(value instanceof Tensor)) {
        throw new TypeError(`fetches: '${name}' is neither a tensor nor null`);
      }
      if (value !== null) checkLength(`fetches: output '${name}'`, value);
    }
    return second as Record<string, Tensor | null>;
  }

  #readFetchNames(names: unknown[]): Record<string, null> {
    if (names.length === 0) throw new TypeError('fetches: expected at least one output name');
    for (const name of names) {
      if (typeof name !== 'string') throw new TypeError('fetches: expected names of outputs');
      this.#checkFetchName(name);
    }
    return Object.fromEntries((names as string[]).map((name) => [name, null]));
  }

  #checkFetchName(name: string): void {
    if (this.outputNames.includes(name)) return;
    throw new RangeError(
      `fetches: there is no output '${name}'${didYouMean(name, this.outputNames)}`,
    );
  }
}

export declare namespace InferenceSession {
  type FeedsType = Readonly<Record<string, Tensor>>;
  type FetchesType = readonly string[] | Readonly<Record<string, Tensor | null>>;
  type ReturnType = Readonly<Record<string, Tensor>>;
  // The path or address of a file, or its content.
  type FileType = string | Blob | Uint8Array | ArrayBufferLike;
  type LogSeverityLevel = 0 | 1 | 2 | 3 | 4;

  interface SessionOptions {
    executionProviders?: ReadonlyArray<string | {readonly name: string} | WebNNOptions>;
    freeDimensionOverrides?: Readonly<Record<string, number>>;
    graphOptimizationLevel?: 'disabled' | 'basic' | 'extended' | 'layout' | 'all';
    enableCpuMemArena?: boolean;
    enableMemPattern?: boolean;
    executionMode?: 'sequential' | 'parallel';
    enableProfiling?: boolean;
    // In WebAssembly a trace has no file, and the prefix has no effect.
    profileFilePrefix?: string;
    logId?: string;
    logSeverityLevel?: LogSeverityLevel;
    logVerbosityLevel?: number;
    // The files with the model's weights.
    externalData?: ReadonlyArray<string | {readonly path: string; readonly data: FileType}>;
    // Where outputs are left: one place for all of them, or one for each name. Default: 'cpu'.
    preferredOutputLocation?:
      | Tensor.DataLocation
      | Readonly<Record<string, Tensor.DataLocation>>;
    // Config entries of the session. Objects in it are flattened; their names are joined by dots.
    extra?: Record<string, unknown>;
  }

  // Options of the execution provider 'webnn'. Other members are passed to createContext().
  interface WebNNOptions {
    readonly name: 'webnn';
    // 'cpu' means accelerated: false, the others mean accelerated: true.
    readonly deviceType?: 'cpu' | 'gpu' | 'npu';
    readonly powerPreference?: 'default' | 'low-power' | 'high-performance';
    readonly numThreads?: number;
    readonly accelerated?: boolean;
    // The application's own MLContext; the package does not destroy it.
    readonly context?: object;
    // A GPUDevice from which the context is made.
    readonly gpuDevice?: object;
    // The MLGraphBuilder class for `context`, if it is not the global one.
    readonly graphBuilder?: new (context: never) => object;
  }

  interface RunOptions {
    logSeverityLevel?: LogSeverityLevel;
    logVerbosityLevel?: number;
    terminate?: boolean;
    tag?: string;
    // Config entries of the run, as in SessionOptions.
    extra?: Record<string, unknown>;
    // Set by a run whose config entry 'tenon.run_report' is '1'.
    report?: RunReport;
  }

  interface RunReport {
    run_id: number;
    duration_us: number;
    attempts: number;
    fallback: boolean;
    reason: string;
    nodes: number;
    providers: Array<{name: string; nodes: number; time_us: number}>;
    memory: Array<{
      location: string;
      device_id: number;
      peak_bytes: number;
      static_bytes: number;
      dynamic_bytes: number;
    }>;
  }

  // A dimension is its size, its name, or '' if the model does not say.
  type ValueMetadata =
    | {readonly name: string; readonly isTensor: false}
    | {
        readonly name: string;
        readonly isTensor: true;
        readonly type: Tensor.Type;
        readonly shape: ReadonlyArray<number | string>;
      };
}
