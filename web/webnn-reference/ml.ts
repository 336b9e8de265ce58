// ML, which creates contexts, and the functions that make it the global `navigator.ml`.
import {MLGraphBuilder} from './builder.js';
import {contexts, MLContext, type ContextState, type MLContextLostInfo} from './context.js';
import {Device, type DeviceOptions} from './device.js';
import {MLGraph} from './graph.js';
import {MLOperand} from './operand.js';
import {illegalConstructor, Slots} from './slots.js';
import {MLTensor} from './tensor.js';
import {Timeline} from './timeline.js';
import {dictionary, enumeration} from './webidl.js';

export interface MLContextOptions {
  powerPreference?: 'default' | 'high-performance' | 'low-power';
  accelerated?: boolean;
}

const devices = new Slots<ML, Device>('ML');

function newContext(device: Device, accelerated: boolean): MLContext {
  let settleLost!: (info: MLContextLostInfo) => void;
  const lost = new Promise<MLContextLostInfo>((resolve) => {
    settleLost = resolve;
  });
  const timeline = new Timeline();
  const state: ContextState = {device, timeline, accelerated, lost, settleLost, isLost: false};
  return contexts.create(MLContext.prototype, state);
}

export class ML {
  constructor() {
    illegalConstructor();
  }

  // A GPUDevice is not used: the context computes on the CPU like all others, and reports that.
  async createContext(options?: MLContextOptions | object): Promise<MLContext> {
    const device = devices.of(this, 'this');
    const {powerPreference = 'default', accelerated = true} = dictionary(options, 'options');
    enumeration(
      powerPreference,
      ['default', 'high-performance', 'low-power'],
      'options.powerPreference',
    );
    if (device.isAbsent) throw new DOMException('there is no device', 'NotSupportedError');
    return newContext(device, device.accelerated && Boolean(accelerated));
  }

  get [Symbol.toStringTag](): string {
    return 'ML';
  }
}

// An ML object with its own device.
export function createML(options?: DeviceOptions): ML {
  return devices.create(ML.prototype, new Device(options));
}

// Defines the interfaces and `navigator.ml` in the global scope, or in another one. Returns a
// function that restores what was there before.
export function install(options?: DeviceOptions, scope: object = globalThis): () => void {
  const ml = createML(options);
  const restore: (() => void)[] = [];
  const define = (target: object, name: string, value: unknown) => {
    const before = Object.getOwnPropertyDescriptor(target, name);
    Object.defineProperty(target, name, {value, configurable: true, writable: true});
    restore.unshift(() => {
      if (before === undefined) Reflect.deleteProperty(target, name);
      else Object.defineProperty(target, name, before);
    });
  };
  const interfaces = {ML, MLContext, MLGraph, MLGraphBuilder, MLOperand, MLTensor};
  for (const [name, value] of Object.entries(interfaces)) define(scope, name, value);
  const {navigator} = scope as {navigator?: object};
  if (navigator === undefined) define(scope, 'navigator', {ml});
  else define(navigator, 'ml', ml);
  return () => restore.forEach((undo) => undo());
}
