// The registry of backends, which make sessions for execution providers.
import {messageOf} from './error-message.js';
import type {InferenceSession} from './inference-session.js';
import type {OnnxValue} from './onnx-value.js';

export declare namespace SessionHandler {
  type FeedsType = {[name: string]: OnnxValue};
  type FetchesType = {[name: string]: OnnxValue | null};
  type ReturnType = {[name: string]: OnnxValue};
}

// A session of a backend. Its arguments have already been checked against its names.
export interface InferenceSessionHandler {
  // Default: the names in the metadata.
  readonly inputNames?: readonly string[];
  readonly outputNames?: readonly string[];
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  // `fetches` has the wanted outputs: a tensor to write to, or null.
  run(
    feeds: SessionHandler.FeedsType,
    fetches: SessionHandler.FetchesType,
    options: InferenceSession.RunOptions,
  ): Promise<SessionHandler.ReturnType>;
  startProfiling(): void;
  endProfiling(): void;
  dispose(): Promise<void>;
}

// How a session requests an execution provider: its name, or an object with its options.
export type ProviderEntry = string | {readonly name: string};

// Thrown by a backend that detects only from a session's options that its provider does not work.
export class ProviderUnavailable extends Error {}

export interface Backend {
  // Rejects if the backend does not work; may then be called again. `entry` is the provider's entry
  // in the session's options, if it has one.
  init(name: string, entry?: ProviderEntry): Promise<void>;
  createInferenceSessionHandler(
    model: string | Uint8Array,
    options: InferenceSession.SessionOptions,
  ): Promise<InferenceSessionHandler>;
}

const backends = new Map<string, {backend: Backend; priority: number}>();

// Registers a backend under the name of an execution provider. Of two backends with one name, the
// one of higher priority is used. A backend of negative priority is used only if it is requested.
export function registerBackend(name: string, backend: Backend, priority: number): void {
  const parts = [backend?.init, backend?.createInferenceSessionHandler];
  if (parts.some((part) => typeof part !== 'function')) {
    throw new TypeError(`backend '${name}': expected init and createInferenceSessionHandler`);
  }
  const known = backends.get(name);
  if (known === undefined || known.priority < priority) backends.set(name, {backend, priority});
}

function byPriority(): string[] {
  return [...backends]
    .filter(([, {priority}]) => priority >= 0)
    .sort(([, a], [, b]) => b.priority - a.priority)
    .map(([name]) => name);
}

// A session of the first working backend among those that the options request or, if they name
// none, among all. Providers that do not work are skipped, with a warning if they were requested.
export async function createHandler(
  model: string | Uint8Array,
  options: InferenceSession.SessionOptions,
): Promise<InferenceSessionHandler> {
  const asked = options.executionProviders ?? [];
  const isAsked = asked.length > 0;
  const failures: string[] = [];
  const leaveOut = (name: string, error: unknown) => {
    failures.push(`'${name}': ${messageOf(error)}`);
    if (isAsked) console.warn(`execution provider '${name}' is left out: ${messageOf(error)}`);
  };
  const working: Array<[string, Backend]> = [];
  for (const entry of isAsked ? asked : byPriority()) {
    const name = typeof entry === 'string' ? entry : entry.name;
    const backend = backends.get(name)?.backend;
    try {
      if (backend === undefined) throw new Error('there is no such backend');
      if (working.length === 0 || isAsked) await backend.init(name, entry);
      working.push([name, backend]);
    } catch (error) {
      leaveOut(name, error);
    }
  }
  for (const [name, backend] of working) {
    try {
      return await backend.createInferenceSessionHandler(model, options);
    } catch (error) {
      if (!(error instanceof ProviderUnavailable)) throw error;
      leaveOut(name, error);
    }
  }
  throw new Error(`no execution provider works: ${failures.join('; ') || 'none is registered'}`);
}
