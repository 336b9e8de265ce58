// A session in the module, with the slots for the feeds and outputs of its runs.
import type {InferenceSession, Tensor} from '../common/index.js';
import type {ModelBlocks} from './block.js';
import type {Core} from './core.js';
import {typeName} from './element-types.js';
import {Slot} from './slot.js';

type Metadata = InferenceSession.ValueMetadata;

// An input or output in the shim's description.
interface ValueDescription {
  name: string;
  isTensor: boolean;
  type: number;
  shape: Array<number | string>;
}

// The shim's description of a session; providers add members.
export interface SessionDescription {
  inputs: ValueDescription[];
  outputs: ValueDescription[];
}

function metadataOf({name, isTensor, type, shape}: ValueDescription): Metadata {
  return isTensor ? {name, isTensor, type: typeName(type), shape} : {name, isTensor: false};
}

// The tensor for an output must fit before the run, as far as the model declares the output.
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

export class CoreSession {
  readonly description: SessionDescription;
  readonly inputMetadata: readonly Metadata[];
  readonly outputMetadata: readonly Metadata[];
  readonly inputs: ReadonlyMap<string, Slot>;
  readonly outputs: ReadonlyMap<string, Slot>;
  #handle: number;

  // Takes ownership of a session's handle.
  constructor(
    readonly core: Core,
    handle: number,
  ) {
    this.#handle = handle;
    try {
      this.description = JSON.parse(core.text(core.call('tenon_session_describe', handle)));
      const {inputs, outputs} = this.description;
      this.inputMetadata = inputs.map(metadataOf);
      this.outputMetadata = outputs.map(metadataOf);
      const slots = (side: ValueDescription[], first: number) =>
        new Map(side.map(({name}, i) => [name, new Slot(core, first, i)]));
      this.inputs = slots(inputs, core.call('tenon_session_inputs', handle));
      this.outputs = slots(outputs, core.call('tenon_session_outputs', handle));
    } catch (error) {
      this.release();
      throw error;
    }
  }

  // Error: the session is released.
  liveHandle(operation: string): number {
    if (this.#handle === 0) throw new Error(`${operation}: the session is released`);
    return this.#handle;
  }

  checkFetches(fetches: Readonly<Record<string, Tensor | null>>): void {
    for (const metadata of this.outputMetadata) {
      const tensor = fetches[metadata.name];
      if (tensor) checkFetch(metadata, tensor);
    }
  }

  // Releases the objects of a run, also of one that failed.
  finishRun(blocks: readonly number[]): void {
    const {core} = this;
    if (core.isDead) return;
    core.call('tenon_session_finish_run', this.#handle);
    blocks.forEach((block) => core.free(block));
  }

  endProfiling(): void {
    const operation = 'InferenceSession.endProfiling';
    this.core.check(operation, 'tenon_session_end_profiling', this.liveHandle(operation));
  }

  release(): void {
    const handle = this.#handle;
    this.#handle = 0;
    this.core.call('tenon_session_release', handle);
  }
}

const POINTER_BYTES = 4;
const OPERATION = 'InferenceSession.create';

// The handle of a new session. With `keeps` its constants may stay in the blocks, which it takes;
// otherwise it copies them.
export function openSession(
  core: Core,
  blocks: ModelBlocks,
  options: number,
  keeps: boolean,
): number {
  const set = (setter: string, texts: string[], ...numbers: number[]) =>
    core.withTexts(OPERATION, texts, (...addresses) =>
      core.check(OPERATION, `tenon_session_options_${setter}`, options, ...addresses, ...numbers),
    );
  const {model, files} = blocks;
  for (const {path, content} of files) {
    set('external_file', [path], content.address, content.size);
  }
  if (keeps) set('config_entry', ['tenon.model_bytes_outlive_session', '1']);
  const out = core.allocate(OPERATION, POINTER_BYTES);
  try {
    core.check(OPERATION, 'tenon_session_create', model.address, model.size, options, out);
    const handle = new DataView(core.memory.buffer).getUint32(out, true);
    if (keeps) blocks.giveTo(handle);
    return handle;
  } finally {
    if (!core.isDead) core.free(out);
  }
}

export function warnOfLateTrace(isProfiling: boolean): void {
  if (isProfiling) return;
  console.warn('a trace starts with its session: set enableProfiling in the options of create()');
}
