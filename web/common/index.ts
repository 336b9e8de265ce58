// The API that all backends share: the future package tenon-common.
export {
  type Backend,
  type InferenceSessionHandler,
  type ProviderEntry,
  registerBackend,
} from './backend.js';
export type {CounterValues, Stats} from './counters.js';
export {env, type LogLevel, type TenonFlags, type WasmFlags} from './env.js';
export {InferenceSession} from './inference-session.js';
export {Tensor} from './tensor.js';
