// The backend of the WebNN provider. Its sessions run in the WebAssembly module, except for the
// partitions that are graphs of a WebNN context.
import type {Backend} from '../common/backend.js';
import type {InferenceSession, InferenceSessionHandler, Tensor} from '../common/index.js';
import {warnOfLateTrace} from '../src/core-session.js';
import {loadCore} from '../src/core.js';
import {loadExternalData} from '../src/external-data.js';
import {readBytes} from '../src/host.js';
import {readOutputLocations, saveOptimizedModel} from '../src/options.js';
import {checkAvailable, providerOptions} from './device.js';
import {SessionState} from './session-state.js';

type Feeds = Readonly<Record<string, Tensor>>;
type Fetches = Readonly<Record<string, Tensor | null>>;

// For sessions that were dropped without release().
const dropped = new FinalizationRegistry<SessionState>((state) => {
  console.warn(`session '${state.logId}' was not released: call release() when it is done`);
  void state.release();
});

// The application's handle of a session. Nothing else refers to it, so that it can be collected.
class WebNNSession implements InferenceSessionHandler {
  readonly #state: SessionState;
  readonly #isProfiling: boolean;
  readonly inputMetadata: readonly InferenceSession.ValueMetadata[];
  readonly outputMetadata: readonly InferenceSession.ValueMetadata[];

  constructor(state: SessionState, isProfiling: boolean) {
    this.#state = state;
    this.#isProfiling = isProfiling;
    this.inputMetadata = state.session.inputMetadata;
    this.outputMetadata = state.session.outputMetadata;
    dropped.register(this, state, state);
  }

  run(
    feeds: Feeds,
    fetches: Fetches,
    options: InferenceSession.RunOptions,
  ): Promise<Record<string, Tensor>> {
    return this.#state.run(feeds, fetches, options);
  }

  startProfiling(): void {
    this.#state.checkLive('InferenceSession.startProfiling');
    warnOfLateTrace(this.#isProfiling);
  }

  endProfiling(): void {
    this.#state.checkLive('InferenceSession.endProfiling');
    this.#state.session.endProfiling();
  }

  async dispose(): Promise<void> {
    this.#state.checkLive('InferenceSession.release');
    dropped.unregister(this.#state);
    await this.#state.release();
  }
}

export const webnnBackend: Backend = {
  async init(_name, entry) {
    const options = typeof entry === 'object' ? entry : {name: 'webnn'};
    checkAvailable(options as InferenceSession.WebNNOptions);
    await loadCore();
  },

  async createInferenceSessionHandler(model, options) {
    const locationOf = readOutputLocations(options, ['cpu', 'ml-tensor']);
    const provider = providerOptions(options);
    let given = options;
    const loadSource = async () => {
      const [bytes, externalData] = await Promise.all([
        typeof model === 'string' ? readBytes(model) : model,
        loadExternalData(options),
      ]);
      return {core: await loadCore(), bytes, externalData, options: given, locationOf};
    };
    const state = await SessionState.open(loadSource, provider, options.logId ?? '');
    await saveOptimizedModel(await loadCore(), given);
    // Not again for a new context.
    given = {...options, optimizedModelFilePath: undefined};
    return new WebNNSession(state, options.enableProfiling === true);
  },
};

