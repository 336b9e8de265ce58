// The backend that runs sessions in the WebAssembly module.
import type {
  Backend,
  InferenceSession,
  InferenceSessionHandler,
  Tensor,
} from '../common/index.js';
import {type Core, loadCore} from './core.js';
import {typeName} from './element-types.js';
import {type ExternalFile, loadExternalData} from './external-data.js';
import {readBytes} from './host.js';
import {withRunOptions, withSessionOptions} from './options.js';
import {Slot} from './slot.js';

type Metadata = InferenceSession.ValueMetadata;

// As the shim describes an input or output.
interface Description {
  name: string;
  isTensor: boolean;
  type: number;
  shape: Array<number | string>;
}

function metadataOf({name, isTensor, type, shape}: Description): Metadata {
  return isTensor ? {name, isTensor, type: typeName(type), shape} : {name, isTensor: false};
}

// An output's tensor must fit before anything runs, as far as the model says what it will be.
function checkFetch(metadata: Metadata, tensor: Tensor): void {
  const expected = metadata.isTensor ? `${metadata.type} [${metadata.shape}]` : 'no tensor';
  const fits =
    metadata.isTensor &&
    metadata.type === tensor.type &&
    metadata.shape.length === tensor.dims.length &&
    metadata.shape.every((dim, i) => typeof dim === 'string' || dim === tensor.dims[i]);
  if (fits) return;
  throw new Error(
    `fetches: output '${metadata.name}': expected ${expected}, got ${tensor.type} [${tensor.dims}]`,
  );
}

class WasmSession implements InferenceSessionHandler {
  readonly inputMetadata: readonly Metadata[];
  readonly outputMetadata: readonly Metadata[];
  readonly #core: Core;
  readonly #isProfiling: boolean;
  #handle: number;
  readonly #inputs: Map<string, Slot>;
  readonly #outputs: Map<string, Slot>;

  constructor(core: Core, handle: number, isProfiling: boolean) {
    this.#core = core;
    this.#handle = handle;
    this.#isProfiling = isProfiling;
    const description: {inputs: Description[]; outputs: Description[]} = JSON.parse(
      core.text(core.call('tenon_session_describe', handle)),
    );
    this.inputMetadata = description.inputs.map(metadataOf);
    this.outputMetadata = description.outputs.map(metadataOf);
    const slots = (side: 'inputs' | 'outputs') => {
      const first = core.call(`tenon_session_${side}`, handle);
      return new Map(description[side].map(({name}, i) => [name, new Slot(core, first, i)]));
    };
    this.#inputs = slots('inputs');
    this.#outputs = slots('outputs');
  }

  // The module runs a session from its begin to its end, so runs end in the order of their calls.
  async run(
    feeds: Readonly<Record<string, Tensor>>,
    fetches: Readonly<Record<string, Tensor | null>>,
    options: InferenceSession.RunOptions,
  ): Promise<Record<string, Tensor>> {
    const operation = 'InferenceSession.run';
    const handle = this.#liveHandle(operation);
    const blocks: number[] = [];
    const core = this.#core;
    for (const metadata of this.outputMetadata) {
      const tensor = fetches[metadata.name];
      if (tensor) checkFetch(metadata, tensor);
    }
    return withRunOptions(core, options, operation, (runOptions) => {
      try {
        for (const [name, tensor] of Object.entries(feeds)) {
          blocks.push(this.#inputs.get(name)!.feed(operation, tensor));
        }
        for (const [name, tensor] of Object.entries(fetches)) {
          const slot = this.#outputs.get(name)!;
          if (tensor === null || tensor.type === 'string') slot.fetch();
          else blocks.push(slot.feed(operation, tensor));
        }
        core.check(operation, 'tenon_session_run', handle, runOptions);
        return Object.fromEntries(
          Object.entries(fetches).map(([name, tensor]) => [
            name,
            this.#outputs.get(name)!.read(tensor),
          ]),
        );
      } finally {
        if (!core.isDead) {
          core.call('tenon_session_finish_run', handle);
          blocks.forEach((block) => core.free(block));
        }
      }
    });
  }

  startProfiling(): void {
    this.#liveHandle('InferenceSession.startProfiling');
    if (this.#isProfiling) return;
    console.warn('a trace starts with its session: set enableProfiling in the options of create()');
  }

  endProfiling(): void {
    const operation = 'InferenceSession.endProfiling';
    this.#core.check(operation, 'tenon_session_end_profiling', this.#liveHandle(operation));
  }

  async dispose(): Promise<void> {
    const handle = this.#liveHandle('InferenceSession.release');
    this.#handle = 0;
    this.#core.call('tenon_session_release', handle);
  }

  #liveHandle(operation: string): number {
    if (this.#handle === 0) throw new Error(`${operation}: the session is released`);
    return this.#handle;
  }
}

const POINTER_BYTES = 4;

// A new session; the module has bytes of its own afterwards.
function openSession(
  core: Core,
  model: Uint8Array,
  externalData: readonly ExternalFile[],
  options: number,
): number {
  const operation = 'InferenceSession.create';
  const blocks: number[] = [];
  const keep = (block: number) => {
    blocks.push(block);
    return block;
  };
  try {
    for (const {path, bytes} of externalData) {
      const block = keep(core.copyIn(operation, bytes));
      core.withTexts(operation, [path], (name) =>
        core.check(
          operation,
          'tenon_session_options_external_file',
          options,
          name,
          block,
          bytes.length,
        ),
      );
    }
    const bytes = keep(core.copyIn(operation, model));
    const out = keep(core.allocate(operation, POINTER_BYTES));
    core.check(operation, 'tenon_session_create', bytes, model.length, options, out);
    return new DataView(core.memory.buffer).getUint32(out, true);
  } finally {
    if (!core.isDead) blocks.forEach((block) => core.free(block));
  }
}

export const wasmBackend: Backend = {
  async init() {
    await loadCore();
  },

  async createInferenceSessionHandler(model, options) {
    const [bytes, externalData] = await Promise.all([
      typeof model === 'string' ? readBytes(model) : model,
      loadExternalData(options),
    ]);
    const core = await loadCore();
    const handle = withSessionOptions(core, options, 'InferenceSession.create', (given) =>
      openSession(core, bytes, externalData, given),
    );
    try {
      return new WasmSession(core, handle, options.enableProfiling === true);
    } catch (error) {
      core.call('tenon_session_release', handle);
      throw error;
    }
  },
};
