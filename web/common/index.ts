// The API that all backends share: the package tenon-common.
export {
  type Backend,
  type InferenceSessionHandler,
  type ProviderEntry,
  registerBackend,
  type SessionHandler,
} from './backend.js';
export type {CounterValues, Stats} from './counters.js';
export {type Env, env, type LogLevel, type TenonFlags, type WasmFlags} from './env.js';
export {InferenceSession, type InferenceSessionFactory} from './inference-session.js';
export type * from './onnx-model.js';
export type * from './onnx-value.js';
export type * from './tensor-conversion.js';
export type * from './tensor-factory.js';
export {Tensor, type TensorConstructor, type TypedTensor} from './tensor.js';
export * from './trace.js';
