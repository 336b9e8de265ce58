// A session of the core whose partitions are graphs on a device.
import type {Counters} from '../common/counters.js';
import {env} from '../common/env.js';
import {messageOf} from '../common/error-message.js';
import type {InferenceSession, Tensor} from '../common/index.js';
import {copyBlocks} from '../src/block.js';
import {CoreSession, openSession} from '../src/core-session.js';
import type {Core} from '../src/core.js';
import type {ExternalFile} from '../src/external-data.js';
import {withSessionOptions} from '../src/options.js';
import type {MLGraph, MLOperandDescriptor, MLTensor} from './api.js';
import {BoundGraph, InputPort, OutputPort} from './bound-graph.js';
import {dataTypeOf, descriptorText, isSameDescriptor} from './data-types.js';
import {describePartitions, type PartitionDescription} from './description.js';
import type {Device} from './device.js';
import {buildProgram, type Program} from './program.js';
import {LENT, TensorCache, type TensorSlot} from './tensor-cache.js';
import {Transfer} from './transfer.js';
import {Variant} from './variant.js';

const DEFAULT_MAX_SHAPE_VARIANTS = 8;
const NO_ACCESS = {readable: false, writable: false};
const WRITABLE = {readable: false, writable: true};

// A partition that the device cannot build.
export class BuildError extends Error {
  constructor(
    readonly firstNode: string,
    cause: unknown,
  ) {
    super(messageOf(cause), {cause});
  }
}

// The parameters for opening a model.
export interface ModelSource {
  readonly core: Core;
  readonly bytes: Uint8Array;
  readonly externalData: ReadonlyArray<ExternalFile<Uint8Array>>;
  readonly options: InferenceSession.SessionOptions;
  readonly locationOf: (output: string) => Tensor.DataLocation;
}

// The origin of a fetch.
export interface Producer {
  readonly partition: number;
  readonly output: number;
}

export class PartitionedModel {
  readonly partitions: readonly PartitionDescription[];
  readonly hostFeeds: ReadonlySet<string>;
  // Of the outputs that partitions make.
  readonly producers: ReadonlyMap<string, Producer>;
  readonly cache: TensorCache;
  readonly transfer: Transfer;
  // The graphs of partitions whose shapes never change.
  readonly base: Variant;
  // Whether all graphs are there before the first run.
  readonly isStatic: boolean;
  // The other graphs by the shapes of all feeds, least recently used first.
  readonly #variants = new Map<string, Variant>();
  // Graphs that copy a tensor of a given type and shape.
  readonly #copiers = new Map<string, MLGraph>();
  readonly #outputSlots = new Map<string, TensorSlot>();

  private constructor(
    readonly session: CoreSession,
    readonly device: Device,
    readonly counters: Counters,
    readonly locationOf: (output: string) => Tensor.DataLocation,
    whenEmpty: () => void,
  ) {
    const {partitions, hostFeeds} = describePartitions(session);
    this.partitions = partitions;
    this.hostFeeds = new Set(hostFeeds);
    this.producers = new Map(
      partitions.flatMap(({outputs}, partition) =>
        outputs.flatMap(({fetches}, output) =>
          fetches.map((name): [string, Producer] => [name, {partition, output}]),
        ),
      ),
    );
    this.isStatic = partitions.every(({isStatic}) => isStatic);
    this.cache = new TensorCache(device, counters, whenEmpty);
    this.transfer = new Transfer(device, counters);
    this.base = new Variant(this.cache);
  }

  // A session. Partitions whose nodes are named by `excluded` stay on the CPU. `whenEmpty` is
  // called when it is closed and has no tensors any more.
  static open(
    {core, bytes, externalData, options, locationOf}: ModelSource,
    device: Device,
    excluded: readonly string[],
    counters: Counters,
    whenEmpty: () => void,
  ): PartitionedModel {
    const operation = 'InferenceSession.create';
    const handle = withSessionOptions(core, options, operation, (given, set) => {
      set('webnn', JSON.stringify(device.limits), excluded.join('\n'));
      const blocks = copyBlocks(core, operation, bytes, externalData);
      try {
        return openSession(core, blocks, given, false);
      } finally {
        blocks.free();
      }
    });
    const session = new CoreSession(core, handle);
    try {
      checkLocations(session, device, locationOf);
      return new PartitionedModel(session, device, counters, locationOf, whenEmpty);
    } catch (error) {
      session.release();
      throw error;
    }
  }

  // Builds the graphs that can be built before the first run. Returns BuildErrors of the partitions
  // that failed.
  async buildStatic(): Promise<BuildError[]> {
    const failures: BuildError[] = [];
    for (const [i, {isStatic}] of this.partitions.entries()) {
      if (!isStatic) continue;
      try {
        await this.#build(this.base, i);
      } catch (error) {
        if (!(error instanceof BuildError)) throw error;
        failures.push(error);
      }
    }
    if (this.isStatic && failures.length === 0) {
      const {core} = this.session;
      const operation = 'InferenceSession.create';
      const handle = this.session.liveHandle(operation);
      core.check(operation, 'tenon_session_release_constants', handle);
    }
    return failures;
  }

  // The graphs for feeds of these shapes. If there are too many, the least recently used ones are
  // destroyed.
  variantFor(feeds: ReadonlyMap<string, {readonly dims: readonly number[]}>): Variant {
    if (this.isStatic) return this.base;
    const key = this.session.inputMetadata.map(({name}) => feeds.get(name)!.dims.join()).join(';');
    let variant = this.#variants.get(key);
    if (variant === undefined) {
      const most = Math.max(1, env.tenon.maxShapeVariants ?? DEFAULT_MAX_SHAPE_VARIANTS);
      for (const [oldest, evicted] of this.#variants) {
        if (this.#variants.size < most) break;
        this.#variants.delete(oldest);
        evicted.evict();
      }
      variant = new Variant(this.cache);
    } else {
      this.#variants.delete(key);
    }
    this.#variants.set(key, variant);
    return variant;
  }

  graph(variant: Variant, partition: number): BoundGraph | undefined {
    return variant.graph(partition) ?? this.base.graph(partition);
  }

  // The graph of a partition at whose barrier a run stands.
  buildAtBarrier(variant: Variant, partition: number): Promise<BoundGraph> {
    return this.#build(variant, partition);
  }

  // A slot for an output that is lent, but is not a slot of the partition that makes it.
  outputSlot(name: string, descriptor: MLOperandDescriptor): TensorSlot {
    const before = this.#outputSlots.get(name);
    if (before !== undefined && isSameDescriptor(before.descriptor, descriptor)) return before;
    if (before !== undefined) this.cache.evict([before]);
    const slot = this.cache.newSlot(descriptor, LENT);
    this.#outputSlots.set(name, slot);
    return slot;
  }

  // Copies between two tensors of one type and shape, on the device.
  async copy(from: MLTensor, to: MLTensor): Promise<void> {
    const {dataType, shape} = from;
    const key = descriptorText(from);
    let graph = this.#copiers.get(key);
    if (graph === undefined) {
      const builder = this.device.newBuilder();
      const input = builder.input('x', {dataType, shape: [...shape]});
      graph = await this.#timed(() => builder.build({y: builder.identity(input)}));
      this.#copiers.set(key, graph);
    }
    this.device.context.dispatch(graph, {x: from}, {y: to});
    this.counters.add('dispatches');
  }

  // Destroys graphs and tensors, except lent ones. A module that has trapped has nothing to free.
  close(): void {
    for (const variant of [this.base, ...this.#variants.values()]) variant.evict();
    for (const graph of this.#copiers.values()) graph.destroy();
    this.cache.close();
    if (!this.session.core.isDead) this.session.release();
  }

  async #timed(build: () => Promise<MLGraph>): Promise<MLGraph> {
    const start = performance.now();
    const graph = await build();
    this.counters.add('builds');
    this.counters.add('buildMilliseconds', performance.now() - start);
    return graph;
  }

  async #build(variant: Variant, partition: number): Promise<BoundGraph> {
    const {core} = this.session;
    const operation = `partition '${this.partitions[partition].name}'`;
    const handle = this.session.liveHandle(operation);
    const address = core.make(operation, 'tenon_session_program', handle, partition);
    const program: Program = JSON.parse(core.text(address));
    let graph;
    try {
      graph = await this.#timed(() => buildProgram(core, this.device, program));
    } catch (error) {
      const loss = await this.device.lossAfterFailure();
      if (loss !== undefined) throw error;
      throw new BuildError(this.partitions[partition].firstNode, error);
    }
    const bound = this.#bind(variant, partition, program, graph);
    variant.setGraph(partition, bound);
    return bound;
  }

  #bind(variant: Variant, partition: number, program: Program, graph: MLGraph): BoundGraph {
    const {inputs, outputs} = this.partitions[partition];
    const lent: MLOperandDescriptor[] = [];
    const outputPorts = program.outputs.map((value) => {
      const index = outputs.findIndex(({name}) => name === value.name);
      const {host, fetches} = outputs[index];
      const isLendable = fetches.some((name) => this.locationOf(name) === 'ml-tensor');
      if (isLendable) lent.push(value);
      const readable = host || fetches.length > 0;
      const access = isLendable ? LENT : readable ? {readable, writable: false} : NO_ACCESS;
      return new OutputPort(value, index, variant.newSlot(value, access), host, fetches);
    });
    const inputPorts = program.inputs.map((value) => {
      const index = inputs.findIndex(({name}) => name === value.name);
      const {source} = inputs[index];
      if (source === 'host') {
        return new InputPort(value, index, variant.newSlot(value, WRITABLE), source);
      }
      if ('partition' in source) {
        const made = this.graph(variant, source.partition)!.outputs.find(
          (port) => port.index === source.output,
        )!;
        return new InputPort(value, index, made.slot, source);
      }
      // In a chain of runs, the tensor of such a feed may become that of the output.
      const access = lent.some((other) => isSameDescriptor(other, value)) ? LENT : WRITABLE;
      return new InputPort(value, index, variant.feedSlot(source.feed, value, access), source);
    });
    return new BoundGraph(graph, inputPorts, outputPorts);
  }
}

// Error: an output is wanted in an MLTensor that cannot hold it.
function checkLocations(
  {outputMetadata}: CoreSession,
  {limits}: Device,
  locationOf: (output: string) => Tensor.DataLocation,
): void {
  for (const output of outputMetadata) {
    if (locationOf(output.name) !== 'ml-tensor') continue;
    const dataType = output.isTensor ? dataTypeOf(output.type) : undefined;
    const holds = [limits.output, limits.input].every(
      ({dataTypes}) => dataType !== undefined && dataTypes.includes(dataType),
    );
    if (holds) continue;
    const type = output.isTensor ? `type ${output.type}` : 'what is no tensor';
    throw new Error(
      `options.preferredOutputLocation: output '${output.name}': ` +
        `an 'ml-tensor' of this context cannot hold ${type}`,
    );
  }
}
