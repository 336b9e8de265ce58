// The class of sessions, for every backend. Arguments are checked here.
import {createHandler, type InferenceSessionHandler} from './backend.js';
import type {InferenceSession} from './inference-session.js';
import {didYouMean} from './nearest.js';
import {checkLength, classOf, isTensor} from './tensor-class.js';
import type {Tensor} from './tensor.js';
import {TRACE_EVENT_BEGIN, TRACE_EVENT_END, TRACE_FUNC_BEGIN, TRACE_FUNC_END} from './trace.js';

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
  return ['ArrayBuffer', 'SharedArrayBuffer'].includes(classOf(value));
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
  if (typeof model === 'string') return [model, checkOptions(rest[0])];
  if (classOf(model) === 'Uint8Array') return [model as Uint8Array, checkOptions(rest[0])];
  if (isBuffer(model)) return viewOf(model, rest);
  throw new TypeError('model: expected a path, a URL, a Uint8Array or an ArrayBuffer');
}

// Runs `body` between marks on the timeline.
async function traced<Result>(name: string, body: () => Promise<Result>): Promise<Result> {
  TRACE_FUNC_BEGIN();
  TRACE_EVENT_BEGIN(name);
  try {
    return await body();
  } finally {
    TRACE_EVENT_END(name);
    TRACE_FUNC_END();
  }
}

export class Session implements InferenceSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly #handler: InferenceSessionHandler;

  private constructor(handler: InferenceSessionHandler) {
    this.#handler = handler;
    this.inputNames = handler.inputNames ?? handler.inputMetadata.map(({name}) => name);
    this.outputNames = handler.outputNames ?? handler.outputMetadata.map(({name}) => name);
  }

  static create(model: unknown, ...rest: unknown[]): Promise<InferenceSession> {
    return traced('InferenceSession.create', async () => {
      const [source, options] = readModel(model, rest);
      return new Session(await createHandler(source, options));
    });
  }

  get inputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.#handler.inputMetadata;
  }

  get outputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.#handler.outputMetadata;
  }

  run(feeds: unknown, second?: unknown, third?: unknown): Promise<InferenceSession.ReturnType> {
    return traced('InferenceSession.run', async () => {
      this.#checkFeeds(feeds);
      const fetches = this.#readFetches(second);
      const options = checkOptions(fetches === undefined ? second : third);
      const all = Object.fromEntries(this.outputNames.map((name) => [name, null]));
      return this.#handler.run(feeds, fetches ?? all, options);
    });
  }

  startProfiling(): void {
    this.#handler.startProfiling();
  }

  endProfiling(): void {
    this.#handler.endProfiling();
  }

  release(): Promise<void> {
    return this.#handler.dispose();
  }

  #checkFeeds(feeds: unknown): asserts feeds is Record<string, Tensor> {
    if (!isObject(feeds) || isTensor(feeds) || Array.isArray(feeds)) {
      throw new TypeError('feeds: expected an object with a tensor for each input name');
    }
    for (const name of this.inputNames) {
      if (feeds[name] === undefined) throw new Error(`feeds: input '${name}' is missing`);
    }
    for (const [name, value] of Object.entries(feeds)) {
      if (!this.inputNames.includes(name)) {
        throw new Error(`feeds: there is no input '${name}'${didYouMean(name, this.inputNames)}`);
      }
      if (!isTensor(value)) throw new TypeError(`feeds: '${name}' is no tensor`);
      checkLength(`feeds: input '${name}'`, value);
    }
  }

  // The second argument of run() as fetches; undefined if there is none or it is the options.
  #readFetches(second: unknown): Record<string, Tensor | null> | undefined {
    if (second === undefined) return undefined;
    if (!isObject(second) || isTensor(second)) {
      throw new TypeError('fetches: expected output names, or an object with tensors or null');
    }
    if (Array.isArray(second)) return this.#readFetchNames(second);
    if (!this.outputNames.some((name) => name in second)) return undefined;
    for (const [name, value] of Object.entries(second)) {
      this.#checkFetchName(name);
      if (value !== null && !isTensor(value)) {
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
