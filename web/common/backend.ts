// The registry of backends: who makes sessions for which execution providers.
import type {InferenceSession} from './inference-session.js';
import type {Tensor} from './tensor.js';

// A session as a backend makes it. What is asked of it has been checked against its names.
export interface InferenceSessionHandler {
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];
  // `fetches` has the wanted outputs: a tensor to write to, or null.
  run(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Readonly<Record<string, Tensor | null>>,
    options: InferenceSession.RunOptions,
  ): Promise<Record<string, Tensor>>;
  startProfiling(): void;
  endProfiling(): void;
  dispose(): Promise<void>;
}

export interface Backend {
  // Rejects where the backend does not work; may be called again then.
  init(name: string): Promise<void>;
  createInferenceSessionHandler(
    model: string | Uint8Array,
    options: InferenceSession.SessionOptions,
  ): Promise<InferenceSessionHandler>;
}

const backends = new Map<string, {backend: Backend; priority: number}>();

// Offers a backend under the name of an execution provider. Of two with one name the one of higher
// priority stays; one of negative priority is used only where it is asked for.
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

// The first backend that works, of those that the options ask for or, if they name none, of all.
// Providers that do not work are left out, with a warning if they were asked for.
export async function resolveBackend(options: InferenceSession.SessionOptions): Promise<Backend> {
  const asked = (options.executionProviders ?? []).map((provider) =>
    typeof provider === 'string' ? provider : provider.name,
  );
  let chosen: Backend | undefined;
  const failures: string[] = [];
  for (const name of asked.length > 0 ? asked : byPriority()) {
    const backend = backends.get(name)?.backend;
    try {
      if (backend === undefined) throw new Error('there is no such backend');
      if (chosen === undefined || asked.length > 0) await backend.init(name);
      chosen ??= backend;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      failures.push(`'${name}': ${reason}`);
      if (asked.length > 0) {
        console.warn(`execution provider '${name}' is left out: ${reason}`);
      }
    }
  }
  if (chosen === undefined) {
    throw new Error(`no execution provider works: ${failures.join('; ') || 'none is registered'}`);
  }
  return chosen;
}
