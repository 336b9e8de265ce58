// The backend that runs sessions in the WebAssembly module.
import type {
  Backend,
  InferenceSession,
  InferenceSessionHandler,
  Tensor,
} from '../common/index.js';
import {openSource, readBlocks} from './block.js';
import {CoreSession, openSession, warnOfLateTrace} from './core-session.js';
import {loadCore} from './core.js';
import {externalFiles} from './external-data.js';
import {
  readOutputLocations,
  saveOptimizedModel,
  withRunOptions,
  withSessionOptions,
} from './options.js';

class WasmSession implements InferenceSessionHandler {
  readonly #session: CoreSession;
  readonly #isProfiling: boolean;

  constructor(session: CoreSession, isProfiling: boolean) {
    this.#session = session;
    this.#isProfiling = isProfiling;
  }

  get inputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.#session.inputMetadata;
  }

  get outputMetadata(): readonly InferenceSession.ValueMetadata[] {
    return this.#session.outputMetadata;
  }

  // The module runs a session from begin to end, so runs end in the order of their calls.
  async run(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Readonly<Record<string, Tensor | null>>,
    options: InferenceSession.RunOptions,
  ): Promise<Record<string, Tensor>> {
    const operation = 'InferenceSession.run';
    const session = this.#session;
    const {core} = session;
    const handle = session.liveHandle(operation);
    const blocks: number[] = [];
    session.checkFetches(fetches);
    return withRunOptions(core, options, operation, (runOptions) => {
      try {
        for (const [name, tensor] of Object.entries(feeds)) {
          blocks.push(session.inputs.get(name)!.feed(operation, tensor));
        }
        for (const [name, tensor] of Object.entries(fetches)) {
          const slot = session.outputs.get(name)!;
          if (tensor === null || tensor.type === 'string') slot.fetch();
          else blocks.push(slot.feed(operation, tensor));
        }
        core.check(operation, 'tenon_session_run', handle, runOptions);
        return Object.fromEntries(
          Object.entries(fetches).map(([name, tensor]) => [
            name,
            session.outputs.get(name)!.read(tensor),
          ]),
        );
      } finally {
        session.finishRun(blocks);
      }
    });
  }

  startProfiling(): void {
    this.#session.liveHandle('InferenceSession.startProfiling');
    warnOfLateTrace(this.#isProfiling);
  }

  endProfiling(): void {
    this.#session.endProfiling();
  }

  async dispose(): Promise<void> {
    this.#session.liveHandle('InferenceSession.release');
    this.#session.release();
  }
}

export const wasmBackend: Backend = {
  async init() {
    await loadCore();
  },

  async createInferenceSessionHandler(model, options) {
    readOutputLocations(options, ['cpu']);
    const operation = 'InferenceSession.create';
    const files = externalFiles(options);
    const [core, ...sources] = await Promise.all([
      loadCore(),
      ...[model, ...files.map(({content}) => content)].map(openSource),
    ]);
    const blocks = await readBlocks(core, operation, sources, files);
    let handle: number;
    try {
      handle = withSessionOptions(core, options, operation, (given) =>
        openSession(core, blocks, given, true),
      );
    } finally {
      blocks.free();
    }
    const session = new CoreSession(core, handle);
    await saveOptimizedModel(core, options);
    return new WasmSession(session, options.enableProfiling === true);
  },
};
