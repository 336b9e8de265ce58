// WebNN contexts. They are created for a session's options, and shared by all sessions with the
// same options.
import type {InferenceSession, Tensor} from '../common/index.js';
import type {
  ML,
  MLContext,
  MLGraphBuilder,
  MLGraphBuilderClass,
  MLOperandDescriptor,
  MLOpSupportLimits,
} from './api.js';
import {dataTypeOf} from './data-types.js';
import type {TensorCache} from './tensor-cache.js';

type ProviderOptions = InferenceSession.WebNNOptions;

// A context and the state that its sessions share.
export class Device {
  readonly limits: MLOpSupportLimits;
  // The reason for the loss of the context, once it is lost.
  lossMessage: string | undefined;
  // Whether reads and writes take views on shared memory; undefined until one was tried.
  takesSharedViews: boolean | undefined;
  // Of its sessions, least recently used first.
  readonly caches = new Set<TensorCache>();

  constructor(
    readonly context: MLContext,
    readonly builderClass: MLGraphBuilderClass,
  ) {
    this.limits = context.opSupportLimits();
    const lose = ({message}: {readonly message: string}) => {
      this.lossMessage = message || 'no reason is given';
    };
    // An implementation without the promise never reports a loss.
    void Promise.resolve(context.lost ?? new Promise(() => {})).then(lose);
  }

  // The tensor for a value of the core. On a device without rank 0, a scalar has one element.
  descriptorOf(type: Tensor.Type, dims: readonly number[]): MLOperandDescriptor {
    const least = this.limits.output.rankRange?.min ?? 0;
    return {dataType: dataTypeOf(type)!, shape: dims.length < least ? [1] : dims};
  }

  newBuilder(): MLGraphBuilder {
    return new this.builderClass(this.context);
  }

  // The reason of a failure that may be caused by the context's loss, which is reported a little
  // later.
  async lossAfterFailure(): Promise<string | undefined> {
    if (this.lossMessage === undefined) await new Promise((resolve) => setTimeout(resolve));
    return this.lossMessage;
  }
}

// A session's lease on a device.
export interface Lease {
  readonly device: Device;
  // Whether the package made the context.
  readonly isOwn: boolean;
  release(): void;
}

interface SharedContext {
  readonly opening: Promise<Device>;
  users: number;
}

const devices = new WeakMap<MLContext, Device>();
const shared = new WeakMap<ML, Map<string, SharedContext>>();
const objectNumbers = new WeakMap<object, number>();
let objectCount = 0;

function numberOf(object: object): number {
  let number = objectNumbers.get(object);
  if (number === undefined) objectNumbers.set(object, (number = ++objectCount));
  return number;
}

function globalML(): ML {
  const {ml} = (globalThis as {navigator?: {ml?: ML}}).navigator ?? {};
  if (typeof ml?.createContext === 'function') return ml;
  throw new Error('WebNN is not there: navigator.ml is missing');
}

function graphBuilder({graphBuilder}: ProviderOptions): MLGraphBuilderClass {
  const found = graphBuilder ?? (globalThis as {MLGraphBuilder?: unknown}).MLGraphBuilder;
  if (typeof found === 'function') return found as MLGraphBuilderClass;
  throw new Error('WebNN is not there: MLGraphBuilder is missing');
}

// The provider's options in those of a session.
export function providerOptions({
  executionProviders = [],
}: InferenceSession.SessionOptions): ProviderOptions {
  const isOurs = (entry: string | {readonly name: string}) =>
    (typeof entry === 'string' ? entry : entry.name) === 'webnn';
  const entry = executionProviders.find(isOurs);
  return typeof entry === 'object' ? (entry as ProviderOptions) : {name: 'webnn'};
}

// Error: WebNN does not accept the options.
export function checkAvailable(options: ProviderOptions): void {
  graphBuilder(options);
  if (options.context === undefined) globalML();
  else if (typeof (options.context as Partial<MLContext>)?.dispatch !== 'function') {
    throw new TypeError('context: expected an MLContext');
  }
}

const ACCELERATED: Record<string, boolean> = {cpu: false, gpu: true, npu: true};

function contextOptions(options: ProviderOptions): Record<string, unknown> {
  const {name, context, gpuDevice, graphBuilder, ...passed} = options;
  const {deviceType} = passed;
  if (deviceType === undefined) return passed;
  if (!Object.hasOwn(ACCELERATED, deviceType)) {
    throw new TypeError(`deviceType: expected cpu, gpu or npu, got '${String(deviceType)}'`);
  }
  return {accelerated: ACCELERATED[deviceType], ...passed};
}

// A key that is equal for options that lead to the same context.
function keyOf({gpuDevice}: ProviderOptions, options: Record<string, unknown>): string {
  const members = Object.entries(options).filter(([, value]) => value !== undefined);
  const device = gpuDevice === undefined ? 0 : numberOf(gpuDevice);
  return JSON.stringify([device, ...members.sort(([a], [b]) => (a < b ? -1 : 1))]);
}

// The context for a set of options. The first caller creates it.
async function shareContext(
  contexts: Map<string, SharedContext>,
  key: string,
  open: () => Promise<Device>,
): Promise<Lease> {
  let entry = contexts.get(key);
  if (entry === undefined) contexts.set(key, (entry = {opening: open(), users: 0}));
  const mine = entry;
  const forget = () => {
    if (contexts.get(key) === mine) contexts.delete(key);
  };
  ++mine.users;
  const device = await mine.opening.catch((error) => {
    forget();
    throw error;
  });
  const release = () => {
    if (--mine.users > 0) return;
    forget();
    device.context.destroy();
  };
  if (device.lossMessage === undefined) return {device, isOwn: true, release};
  // Its sessions release it one by one; new sessions get another one.
  forget();
  release();
  return shareContext(contexts, key, open);
}

// The device for the options. A context of the application is never destroyed. One that was created
// here is destroyed with its last lease.
export async function acquireDevice(options: ProviderOptions): Promise<Lease> {
  const builder = graphBuilder(options);
  if (options.context !== undefined) {
    const context = options.context as MLContext;
    let device = devices.get(context);
    if (device === undefined) devices.set(context, (device = new Device(context, builder)));
    return {device, isOwn: false, release: () => undefined};
  }
  const ml = globalML();
  const passed = contextOptions(options);
  let contexts = shared.get(ml);
  if (contexts === undefined) shared.set(ml, (contexts = new Map()));
  return shareContext(contexts, keyOf(options, passed), async () => {
    return new Device(await ml.createContext(options.gpuDevice ?? passed), builder);
  });
}
