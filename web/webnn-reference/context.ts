// MLContext: tensors, their contents, and the execution of graphs, all in the order of a timeline.
import type {Device} from './device.js';
import {byteLengthOf, decode, encode, type Descriptor, type MLOperandDataType} from './elements.js';
import {execute, graphs, type GraphState, type MLGraph} from './graph.js';
import type {MLOpSupportLimits, MLTensorLimits} from './limits.js';
import {isDimension, sameShape} from './shapes.js';
import {illegalConstructor, Slots} from './slots.js';
import {
  isGone,
  MLTensor,
  tensors,
  type MLOperandDescriptor,
  type MLTensorDescriptor,
  type TensorState,
} from './tensor.js';
import type {Timeline} from './timeline.js';
import {bytesFor, descriptor, dictionary, fail, type BufferSource} from './webidl.js';

export interface MLContextLostInfo {
  message: string;
}

export type MLNamedTensors = Record<string, MLTensor>;

export interface ContextState {
  readonly device: Device;
  readonly timeline: Timeline;
  readonly accelerated: boolean;
  readonly lost: Promise<MLContextLostInfo>;
  readonly settleLost: (info: MLContextLostInfo) => void;
  isLost: boolean;
}

export const contexts = new Slots<MLContext, ContextState>('MLContext');

export function invalidState(message: string): DOMException {
  return new DOMException(message, 'InvalidStateError');
}

function unknownError(message: string): DOMException {
  return new DOMException(message, 'UnknownError');
}

const LOST = 'the context is lost';

// Fails all pending steps of the timeline, and later calls.
function lose(context: ContextState, message: string): void {
  if (context.isLost) return;
  context.isLost = true;
  context.settleLost({message});
  context.timeline.abort();
}

// The result of a step. It rejects if the step fails or if the context is lost before.
export function onTimeline<T>(context: ContextState, run: () => T): Promise<T> {
  return new Promise((resolve, reject) => {
    context.timeline.enqueue({
      duration: context.device.stepDuration,
      run: () => {
        try {
          resolve(run());
        } catch (error) {
          reject(error);
        }
      },
      abort: () => reject(invalidState(LOST)),
    });
  });
}

// Throws for what the device cannot hold; `limits` are those of inputs, constants or outputs.
export function checkDescriptor(
  {dataType, shape}: Descriptor,
  context: ContextState,
  limits: MLTensorLimits,
  what: string,
): void {
  if (!limits.dataTypes.includes(dataType)) {
    fail(`${what}.dataType`, `one of ${limits.dataTypes.join(', ')}`, dataType);
  }
  checkShape({dataType, shape}, context, what);
  const {min, max} = limits.rankRange;
  if (shape.length < min || shape.length > max) {
    fail(`${what}.shape`, `a rank from ${min} to ${max}`, shape.length);
  }
}

export function checkShape(tensor: Descriptor, context: ContextState, what: string): void {
  const bad = tensor.shape.find((dimension) => !isDimension(dimension));
  if (bad !== undefined) fail(`${what}.shape`, 'dimensions from 1 to 2147483647', bad);
  const most = context.device.limits.maxTensorByteLength;
  const length = byteLengthOf(tensor);
  if (length > most) fail(what, `at most ${most} bytes`, length);
}

function tensorOf(
  context: ContextState,
  descriptor: Descriptor,
  uses: {readable: boolean; writable: boolean; constant: boolean},
): {tensor: MLTensor; state: TensorState} {
  const state = {context, descriptor, ...uses, isDestroyed: false, pendingReads: new Set<never>()};
  return {tensor: tensors.create(MLTensor.prototype, state), state};
}

function createTensor(
  context: ContextState,
  {tensor, state}: ReturnType<typeof tensorOf>,
  contents?: Uint8Array,
): Promise<MLTensor> {
  return onTimeline(context, () => {
    if (context.device.fails('createTensor')) throw unknownError('the device has no memory left');
    try {
      state.bytes = contents ?? new Uint8Array(byteLengthOf(state.descriptor));
    } catch {
      throw unknownError('out of memory');
    }
    return tensor;
  });
}

// A tensor of the context that is not destroyed.
function usable(context: ContextState, value: unknown, what: string): TensorState {
  const tensor = tensors.of(value, what);
  if (tensor.context !== context) throw new TypeError(`${what}: it is of another context`);
  if (isGone(tensor)) throw new TypeError(`${what}: it is destroyed`);
  return tensor;
}

// The tensors that a dispatch names. They must match the graph's names.
function bind(
  context: ContextState,
  named: unknown,
  expected: ReadonlyMap<string, Descriptor>,
  what: string,
): Map<string, TensorState> {
  const members = Object.entries(dictionary(named, what));
  if (members.length !== expected.size) {
    fail(
      what,
      `the tensors ${[...expected.keys()].join(', ')}`,
      members.map(([name]) => name).join(', '),
    );
  }
  return new Map(
    members.map(([name, value]) => {
      const tensor = usable(context, value, `${what}.${name}`);
      const {dataType, shape} =
        expected.get(name) ?? fail(what, `one of ${[...expected.keys()].join(', ')}`, name);
      if (tensor.constant) throw new TypeError(`${what}.${name}: it is a constant`);
      const got = tensor.descriptor;
      if (got.dataType !== dataType || !sameShape(got.shape, shape)) {
        fail(`${what}.${name}`, `${dataType}[${shape}]`, `${got.dataType}[${got.shape}]`);
      }
      return [name, tensor];
    }),
  );
}

function compute(
  graph: GraphState,
  inputs: ReadonlyMap<string, TensorState>,
  outputs: ReadonlyMap<string, TensorState>,
): void {
  const elements = (tensor: TensorState) => decode(tensor.bytes!, tensor.descriptor.dataType);
  const feeds = new Map(Array.from(inputs, ([name, tensor]) => [name, elements(tensor)]));
  for (const [name, data] of execute(graph, feeds)) {
    const {bytes, descriptor} = outputs.get(name)!;
    bytes!.set(encode(data, descriptor.dataType));
  }
}

export class MLContext {
  constructor() {
    illegalConstructor();
  }

  get accelerated(): boolean {
    return contexts.of(this, 'this').accelerated;
  }

  get lost(): Promise<MLContextLostInfo> {
    return contexts.of(this, 'this').lost;
  }

  opSupportLimits(): MLOpSupportLimits {
    return structuredClone(contexts.of(this, 'this').device.limits);
  }

  dispatch(graph: MLGraph, inputs: MLNamedTensors, outputs: MLNamedTensors): void {
    const context = contexts.of(this, 'this');
    const compiled = graphs.of(graph, 'graph');
    if (compiled.context !== context) throw new TypeError('graph: it is of another context');
    if (compiled.isDestroyed || context.isLost) throw invalidState('the graph is destroyed');
    const from = bind(context, inputs, compiled.inputs, 'inputs');
    const to = bind(context, outputs, compiled.outputs, 'outputs');
    const all = [...from.values(), ...to.values()];
    if (new Set(all).size !== all.length) {
      throw new TypeError('dispatch: one tensor is given twice');
    }
    // Bindings are compared in the graph's order of names, not the caller's.
    const bound = [
      ...Array.from(compiled.inputs.keys(), (name) => from.get(name)!),
      ...Array.from(compiled.outputs.keys(), (name) => to.get(name)!),
    ];
    const isRebind = compiled.bound?.some((tensor, i) => tensor !== bound[i]) ?? false;
    compiled.bound = bound;
    const {device} = context;
    context.timeline.enqueue({
      duration: device.stepDuration + (isRebind ? device.rebindDuration : 0),
      run: () => {
        if (device.fails('loseAtDispatch')) return lose(context, 'the device was lost');
        try {
          compute(compiled, from, to);
        } catch (error) {
          lose(context, `the execution of a graph failed: ${String(error)}`);
        }
      },
      abort: () => undefined,
    });
  }

  async createTensor(options: MLTensorDescriptor): Promise<MLTensor> {
    const context = contexts.of(this, 'this');
    const expected = descriptor(options, 'descriptor');
    if (context.isLost) throw invalidState(LOST);
    checkDescriptor(expected, context, context.device.limits.input, 'descriptor');
    const uses = {
      readable: Boolean(options.readable),
      writable: Boolean(options.writable),
      constant: false,
    };
    return createTensor(context, tensorOf(context, expected, uses));
  }

  async createConstantTensor(
    options: MLOperandDescriptor,
    inputData: BufferSource,
  ): Promise<MLTensor> {
    const context = contexts.of(this, 'this');
    const expected = descriptor(options, 'descriptor');
    if (context.isLost) throw invalidState(LOST);
    checkDescriptor(expected, context, context.device.limits.constant, 'descriptor');
    const contents = bytesFor(expected, inputData, 'inputData').slice();
    const uses = {readable: false, writable: false, constant: true};
    return createTensor(context, tensorOf(context, expected, uses), contents);
  }

  readTensor(tensor: MLTensor): Promise<ArrayBuffer>;
  readTensor(tensor: MLTensor, outputData: BufferSource): Promise<undefined>;
  async readTensor(
    tensor: MLTensor,
    ...[outputData]: [outputData?: BufferSource]
  ): Promise<ArrayBuffer | undefined> {
    const context = contexts.of(this, 'this');
    const source = usable(context, tensor, 'tensor');
    if (!source.readable) throw new TypeError('tensor: it is not readable');
    if (outputData !== undefined) bytesFor(source.descriptor, outputData, 'outputData');
    return new Promise((resolve, reject) => {
      const destroyed = () => reject(invalidState('the tensor was destroyed'));
      source.pendingReads.add(destroyed);
      onTimeline(context, () => {
        if (!source.pendingReads.delete(destroyed)) return undefined;
        if (context.device.fails('readTensor')) throw unknownError('the device cannot be read');
        if (outputData === undefined) return source.bytes!.slice().buffer as ArrayBuffer;
        // It may be detached by now; that is a TypeError.
        bytesFor(source.descriptor, outputData, 'outputData').set(source.bytes!);
        return undefined;
      }).then(resolve, reject);
    });
  }

  writeTensor(tensor: MLTensor, inputData: BufferSource): void {
    const context = contexts.of(this, 'this');
    const target = usable(context, tensor, 'tensor');
    if (!target.writable) throw new TypeError('tensor: it is not writable');
    const bytes = bytesFor(target.descriptor, inputData, 'inputData').slice();
    if (context.device.fails('writeTensor')) throw unknownError('the device cannot be written');
    context.timeline.enqueue({
      duration: context.device.stepDuration,
      run: () => target.bytes!.set(bytes),
      abort: () => undefined,
    });
  }

  destroy(): void {
    lose(contexts.of(this, 'this'), 'destroy() was called');
  }

  get [Symbol.toStringTag](): string {
    return 'MLContext';
  }
}

export type {MLOperandDataType};
