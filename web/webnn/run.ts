// One run: from barrier to barrier of the core. In between, tensors are bound and graphs
// dispatched.
import {Tensor} from '../common/index.js';
import {isOnCpu, type NumericType} from '../common/tensor.js';
import {andThen, type NowOrLater, withCleanup} from '../src/now-or-later.js';
import {withRunOptions} from '../src/options.js';
import {Slot} from '../src/slot.js';
import type {Elements, MLTensor} from './api.js';
import type {BoundGraph, CoreValue, InputPort, OutputPort} from './bound-graph.js';
import {
  byteLengthOf,
  dataTypeOf,
  descriptorText,
  isSameDescriptor,
  newArray,
} from './data-types.js';
import {lentTensor} from './lent-tensor.js';
import type {PartitionedModel} from './partitioned-model.js';
import {type Feed, mlTensorOf, type Request} from './request.js';
import {type OwnedTensor, ownerOf, type TensorSlot} from './tensor-cache.js';
import type {Variant} from './variant.js';

const OPERATION = 'InferenceSession.run';

// struct Barrier of the shim.
const PARTITION = 0;
const INPUTS = 12;
const OUTPUTS = 16;
const BARRIER_BYTES = 20;

// Numbers runs, so that a slot knows which run wrote it.
let runCount = 0;

// A result, and the promises that must end first.
export interface Pending {
  readonly name: string;
  readonly tensor: Tensor;
  readonly read?: Promise<void>;
}

// All end before the first failure is thrown, because their memory is in use until then.
async function settle(promises: readonly Promise<void>[]): Promise<void> {
  if (promises.length === 0) return;
  for (const outcome of await Promise.allSettled(promises)) {
    if (outcome.status === 'rejected') throw outcome.reason;
  }
}

// The name of the input of the model that a port takes, if it does.
function feedName({source}: InputPort): string | undefined {
  return source !== 'host' && 'feed' in source ? source.feed : undefined;
}

export class Run {
  readonly #number = ++runCount;
  readonly #model: PartitionedModel;
  readonly #request: Request;
  readonly #variant: Variant;
  // The application's tensors that are feeds or outputs of this run.
  readonly #given = new Set<MLTensor>();
  readonly #lent: OwnedTensor[] = [];
  // What it has read of its feeds.
  #hasShownFeeds = false;
  #hasPassedBarriers = false;

  constructor(model: PartitionedModel, request: Request) {
    this.#model = model;
    this.#request = request;
    this.#variant = model.variantFor(request.feeds);
    this.#variant.beginRun();
    model.cache.beginRun();
    for (const {mlTensor} of request.feeds.values()) {
      if (mlTensor !== undefined) this.#given.add(mlTensor);
    }
  }

  // Issues all work of the run: at once if nothing has to be awaited. After that the next run may
  // begin, and these results are awaited.
  issue(): NowOrLater<Pending[]> {
    const {feeds, fetches} = this.#request;
    this.#model.session.checkFetches(fetches);
    for (const [name, {mlTensor}] of feeds) this.#checkContext(`feeds: input '${name}'`, mlTensor);
    for (const [name, tensor] of Object.entries(fetches)) {
      this.#checkContext(`fetches: output '${name}'`, mlTensorOf(tensor));
    }
    return andThen(this.#readHostFeeds(), (onHost) => this.#pass(onHost));
  }

  // Whether the data of a feed on the CPU is still to be read, by this run or by the one that
  // repeats it if a partition cannot be built.
  needsFeed(name: string): boolean {
    if (this.#hasPassedBarriers) return false;
    const {hostFeeds, isStatic, partitions} = this.#model;
    if (!isStatic || (hostFeeds.has(name) && !this.#hasShownFeeds)) return true;
    return partitions.some((_, partition) =>
      this.#model
        .graph(this.#variant, partition)!
        .inputs.some((port) => feedName(port) === name && port.slot.writtenIn !== this.#number),
    );
  }

  // The results, once they have arrived.
  async settle(pending: readonly Pending[]): Promise<Record<string, Tensor>> {
    await settle(pending.flatMap(({read}) => read ?? []));
    return Object.fromEntries(pending.map(({name, tensor}) => [name, tensor]));
  }

  // Ends the run. If it failed, its tensors go back to their slots.
  end(isFailed: boolean): void {
    if (isFailed) this.#lent.forEach((owned) => owned.dispose());
    this.#variant.endRun();
    this.#model.cache.endRun();
  }

  #checkContext(what: string, tensor: MLTensor | undefined): void {
    const owner = tensor && ownerOf(tensor);
    if (owner === undefined || owner.cache.device === this.#model.device) return;
    throw new Error(`${OPERATION}: ${what}: its MLTensor is of another context`);
  }

  // From the first barrier to the results. `onHost` has the data of feeds on the device.
  #pass(onHost: ReadonlyMap<string, Tensor.DataType>): NowOrLater<Pending[]> {
    const {session, producers} = this.#model;
    const {fetches, options} = this.#request;
    const blocks: number[] = [];
    const issue = (runOptions: number) => {
      this.#showFeeds(onHost, blocks);
      for (const [name, tensor] of Object.entries(fetches)) {
        if (producers.has(name)) continue;
        const slot = session.outputs.get(name)!;
        if (!tensor || !isOnCpu(tensor) || tensor.type === 'string') slot.fetch();
        else blocks.push(slot.feed(OPERATION, tensor));
      }
      return andThen(this.#passBarriers(runOptions), () => this.#collect());
    };
    return withRunOptions(session.core, options, OPERATION, (runOptions) =>
      withCleanup(
        () => issue(runOptions),
        () => session.finishRun(blocks),
      ),
    );
  }

  // Reads feeds on the device that nodes on the CPU need.
  #readHostFeeds(): NowOrLater<ReadonlyMap<string, Tensor.DataType>> {
    const {hostFeeds, transfer} = this.#model;
    const read = new Map<string, Tensor.DataType>();
    const reads: Promise<void>[] = [];
    for (const name of hostFeeds) {
      const {type, mlTensor} = this.#request.feeds.get(name)!;
      if (mlTensor === undefined) continue;
      const data = newArray(type as NumericType, byteLengthOf(mlTensor));
      read.set(name, data);
      reads.push(transfer.read(mlTensor, data));
    }
    return reads.length === 0 ? read : settle(reads).then(() => read);
  }

  #showFeeds(onHost: ReadonlyMap<string, Tensor.DataType>, blocks: number[]): void {
    const {session, hostFeeds} = this.#model;
    for (const [name, feed] of this.#request.feeds) {
      const slot = session.inputs.get(name)!;
      if (hostFeeds.has(name) || feed.type === 'string') {
        blocks.push(slot.feed(OPERATION, {...feed, data: onHost.get(name) ?? feed.data!}));
      } else {
        const {data, mlTensor} = feed;
        const size =
          mlTensor === undefined ? (data as Elements).byteLength : byteLengthOf(mlTensor);
        slot.describe(OPERATION, feed, size);
      }
    }
    this.#hasShownFeeds = true;
  }

  #passBarriers(runOptions: number): NowOrLater<void> {
    const {session} = this.#model;
    const handle = session.liveHandle(OPERATION);
    session.core.check(OPERATION, 'tenon_session_begin_run', handle, runOptions);
    return this.#passRemaining(handle);
  }

  #passRemaining(handle: number): NowOrLater<void> {
    const {core} = this.#model.session;
    for (;;) {
      core.check(OPERATION, 'tenon_session_next', handle);
      const record = core.call('tenon_session_barrier', handle);
      if (record === 0) break;
      const awaited = this.#runPartition(record);
      if (awaited !== undefined) return awaited.then(() => this.#passRemaining(handle));
    }
    this.#hasPassedBarriers = true;
  }

  // Returns a promise if something must be awaited.
  #runPartition(record: number): Promise<void> | undefined {
    const {core} = this.#model.session;
    const view = new DataView(core.memory.buffer, record, BARRIER_BYTES);
    const partition = view.getUint32(PARTITION, true);
    const inputs = view.getUint32(INPUTS, true);
    const outputs = view.getUint32(OUTPUTS, true);
    const graph = this.#model.graph(this.#variant, partition);
    if (graph !== undefined && this.#fits(graph, inputs, outputs)) {
      return this.#runGraph(graph, inputs, outputs);
    }
    return this.#model.buildAtBarrier(this.#variant, partition).then((built) => {
      this.#fits(built, inputs, outputs);
      return this.#runGraph(built, inputs, outputs);
    });
  }

  #slot(first: number, {index}: {readonly index: number}): Slot {
    return new Slot(this.#model.session.core, first, index);
  }

  #fits(graph: BoundGraph, inputs: number, outputs: number): boolean {
    return (
      graph.inputs.every((port) => port.fits(this.#slot(inputs, port))) &&
      graph.outputs.every((port) => port.fits(this.#slot(outputs, port)))
    );
  }

  #runGraph(graph: BoundGraph, inputs: number, outputs: number): Promise<void> | undefined {
    const given = this.#bindGiven(graph);
    const missing = this.#fill(graph, given);
    if (missing.length === 0 && given.copies.length === 0) {
      return this.#dispatch(graph, given.ports, inputs, outputs);
    }
    return this.#prepare(missing, given).then(() =>
      this.#dispatch(graph, given.ports, inputs, outputs),
    );
  }

  async #prepare(missing: readonly TensorSlot[], given: GivenTensors): Promise<void> {
    const {cache} = this.#model;
    const created = await Promise.allSettled(missing.map((slot) => cache.create(slot)));
    const failed = created.find(({status}) => status === 'rejected');
    if (failed !== undefined) throw (failed as PromiseRejectedResult).reason;
    for (const {slot, tensor} of given.copies) {
      if (slot.writtenIn === this.#number) continue;
      await this.#model.copy(tensor, slot.current!.tensor);
      slot.writtenIn = this.#number;
    }
  }

  // The application's tensors that ports use directly. WebNN refuses one tensor at two ports, so it
  // is copied to the second slot's own tensor.
  #bindGiven({inputs, outputs}: BoundGraph): GivenTensors {
    const given: GivenTensors = {ports: new Map(), copies: []};
    const used = new Set<MLTensor>();
    for (const port of inputs) {
      const tensor = this.#feedOf(port)?.mlTensor;
      if (tensor === undefined) continue;
      checkFit(`feeds: input '${feedName(port)}'`, port, tensor);
      if (used.has(tensor)) {
        given.copies.push({slot: port.slot, tensor});
      } else {
        used.add(tensor);
        given.ports.set(port, tensor);
      }
    }
    for (const port of outputs) {
      const tensor = this.#givenOutput(port);
      if (tensor === undefined) continue;
      this.#given.add(tensor);
      given.ports.set(port, tensor);
    }
    return given;
  }

  #feedOf(port: InputPort): Feed | undefined {
    const name = feedName(port);
    return name === undefined ? undefined : this.#request.feeds.get(name);
  }

  // The tensor in the fetches to which the port can write.
  #givenOutput(port: OutputPort): MLTensor | undefined {
    const {fetches} = this.#request;
    const wanted = port.fetches.filter((name) => fetches[name] !== undefined);
    const isRead = port.isHost || wanted.some((name) => mlTensorOf(fetches[name]) === undefined);
    for (const name of wanted) {
      const tensor = mlTensorOf(fetches[name]);
      if (tensor === undefined) continue;
      checkFit(`fetches: output '${name}'`, port, tensor);
      if (!this.#given.has(tensor) && (tensor.readable || !isRead)) return tensor;
    }
    return undefined;
  }

  // Gives tensors to the slots that need them. Returns the slots that need a new tensor.
  #fill({inputs, outputs}: BoundGraph, {ports, copies}: GivenTensors): TensorSlot[] {
    const {cache} = this.#model;
    const missing = new Set<TensorSlot>();
    for (const port of inputs) {
      if (ports.has(port) || isInternal(port) || port.slot.writtenIn === this.#number) continue;
      if (!cache.fill(port.slot)) missing.add(port.slot);
    }
    for (const port of outputs) {
      port.isLent = false;
      if (ports.has(port)) continue;
      const spare = this.#spareSlots(inputs, copies);
      if (!cache.fill(port.slot, spare)) missing.add(port.slot);
    }
    return [...missing];
  }

  // Slots of feeds whose own tensor this run does not need.
  *#spareSlots(
    inputs: readonly InputPort[],
    copies: GivenTensors['copies'],
  ): Generator<TensorSlot> {
    for (const port of inputs) {
      if (this.#feedOf(port)?.mlTensor === undefined) continue;
      if (port.slot.writtenIn === this.#number) continue;
      if (!copies.some(({slot}) => slot === port.slot)) yield port.slot;
    }
  }

  // Only data that nodes on the CPU read is awaited.
  #dispatch(
    graph: BoundGraph,
    given: ReadonlyMap<InputPort | OutputPort, MLTensor>,
    inputs: number,
    outputs: number,
  ): Promise<void> | undefined {
    for (const port of graph.inputs) {
      port.tensor = given.get(port) ?? this.#written(port, inputs);
    }
    for (const port of graph.outputs) port.tensor = given.get(port) ?? port.slot.current!.tensor;
    const {device, counters, transfer} = this.#model;
    graph.dispatch(device, counters);
    const onHost = graph.outputs.filter(({isHost}) => isHost);
    if (onHost.length === 0) return undefined;
    return settle(
      onHost.map((port) => {
        const slot = this.#slot(outputs, port);
        return transfer.readToModule(port.tensor, () => slot.bytes, port.conversion);
      }),
    );
  }

  // The tensor of an input, with its data.
  #written(port: InputPort, inputs: number): MLTensor {
    const {source, slot, conversion} = port;
    const {transfer} = this.#model;
    if (source !== 'host' && 'partition' in source) {
      const maker = this.#model.graph(this.#variant, source.partition)!;
      return maker.outputs.find(({index}) => index === source.output)!.tensor;
    }
    const {tensor} = slot.current!;
    if (slot.writtenIn === this.#number) return tensor;
    const data = this.#feedOf(port)?.data ?? this.#slot(inputs, port).bytes;
    transfer.write(tensor, data as Elements, conversion);
    slot.writtenIn = this.#number;
    return tensor;
  }

  // Issues the reads of all results, then makes the lent tensors.
  #collect(): NowOrLater<Pending[]> {
    const {fetches} = this.#request;
    const pending = new Map<string, Pending>();
    const later: Array<() => Promise<void>> = [];
    for (const [name, tensor] of Object.entries(fetches)) {
      const port = this.#portOf(name);
      const location = tensor?.location ?? this.#model.locationOf(name);
      if (location !== 'ml-tensor') {
        pending.set(name, this.#read(name, port, tensor));
      } else {
        later.push(async () => {
          pending.set(name, {name, tensor: await this.#leaveOnDevice(name, port, tensor)});
        });
      }
    }
    const inOrder = () => Object.keys(fetches).map((name) => pending.get(name)!);
    if (later.length === 0) return inOrder();
    const makeLent = async () => {
      try {
        for (const each of later) await each();
      } catch (error) {
        await Promise.allSettled(Array.from(pending.values(), ({read}) => read));
        throw error;
      }
      return inOrder();
    };
    return makeLent();
  }

  #portOf(name: string): OutputPort | undefined {
    const producer = this.#model.producers.get(name);
    if (producer === undefined) return undefined;
    const graph = this.#model.graph(this.#variant, producer.partition)!;
    return graph.outputs.find(({index}) => index === producer.output);
  }

  #read(name: string, port: OutputPort | undefined, into: Tensor | null): Pending {
    if (port === undefined) {
      return {name, tensor: this.#model.session.outputs.get(name)!.read(into)};
    }
    const {type, dims} = port.core!;
    const tensor = into ?? newTensor(port.core!, byteLengthOf(coreDescriptor(port)));
    checkDims(name, tensor, {type, dims});
    const read = this.#model.transfer.read(port.tensor, tensor.data as Elements, port.conversion);
    read.catch(() => undefined); // reported where it is awaited
    return {name, tensor, read};
  }

  // An output as an MLTensor: the application's own, or a lent one.
  async #leaveOnDevice(
    name: string,
    port: OutputPort | undefined,
    given: Tensor | null,
  ): Promise<Tensor> {
    const target = mlTensorOf(given);
    if (target !== undefined) {
      if (port === undefined) this.#writeFromCore(name, target);
      else if (port.tensor !== target) await this.#model.copy(port.tensor, target);
      return given!;
    }
    const {cache, device, transfer} = this.#model;
    if (port !== undefined && port.tensor === port.slot.current?.tensor && !port.isLent) {
      port.isLent = true;
      return this.#lend(port.slot, port.core!);
    }
    const made = this.#model.session.outputs.get(name)!;
    const value = port?.core ?? {type: made.type, dims: made.dims};
    const {dataType, shape} = port?.value ?? device.descriptorOf(value.type, value.dims);
    const slot = this.#model.outputSlot(name, {dataType, shape});
    if (!cache.fill(slot)) await cache.create(slot);
    const {tensor} = slot.current!;
    if (port === undefined) transfer.write(tensor, made.bytes);
    else await this.#model.copy(port.tensor, tensor);
    return this.#lend(slot, value);
  }

  #writeFromCore(name: string, target: MLTensor): void {
    const slot = this.#model.session.outputs.get(name)!;
    const expected = this.#model.device.descriptorOf(slot.type, slot.dims);
    const what = `fetches: output '${name}'`;
    if (!isSameDescriptor(expected, target)) mismatch(what, expected, target);
    this.#model.transfer.write(target, slot.bytes);
  }

  #lend(slot: TensorSlot, value: CoreValue): Tensor {
    const owned = this.#model.cache.lend(slot);
    this.#lent.push(owned);
    return lentTensor(owned, value, this.#model.transfer);
  }
}

// How a dispatch uses tensors that the application made or borrowed.
interface GivenTensors {
  readonly ports: Map<InputPort | OutputPort, MLTensor>;
  readonly copies: Array<{readonly slot: TensorSlot; readonly tensor: MLTensor}>;
}

function isInternal({source}: InputPort): boolean {
  return source !== 'host' && 'partition' in source;
}

function mismatch(
  what: string,
  expected: Parameters<typeof descriptorText>[0],
  got: Parameters<typeof descriptorText>[0],
): never {
  throw new Error(
    `${OPERATION}: ${what}: expected an MLTensor of ${descriptorText(expected)}, ` +
      `got ${descriptorText(got)}`,
  );
}

function checkFit(what: string, {value}: InputPort | OutputPort, tensor: MLTensor): void {
  if (!isSameDescriptor(value, tensor)) mismatch(what, value, tensor);
}

function coreDescriptor({core}: OutputPort) {
  return {dataType: dataTypeOf(core!.type)!, shape: core!.dims};
}

function newTensor({type, dims}: CoreValue, byteLength: number): Tensor {
  return new Tensor(type, newArray(type as NumericType, byteLength), [...dims]);
}

// A tensor for an output whose shape the model does not declare.
function checkDims(name: string, {dims}: Tensor, expected: CoreValue): void {
  if (dims.length === expected.dims.length && dims.every((dim, i) => dim === expected.dims[i])) {
    return;
  }
  throw new Error(
    `${OPERATION}: fetches: output '${name}': expected [${expected.dims}], got [${dims}]`,
  );
}
