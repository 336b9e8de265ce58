// Tenon's own implementation of the Web Neural Network API, for tests and as a polyfill. Importing
// it has no side effects. `install` defines the globals; `createML` makes an object like
// navigator.ml.
export {MLGraphBuilder, type MLNamedOperands} from './builder.js';
export {MLContext, type MLContextLostInfo, type MLNamedTensors} from './context.js';
export type {DeviceOptions, FaultOptions} from './device.js';
export type {MLOperandDataType} from './elements.js';
export {MLGraph} from './graph.js';
export {Instrument, instrument, type DispatchRecord} from './instrument.js';
export type {
  LimitsOptions,
  MLOperatorLimits,
  MLOpSupportLimits,
  MLRankRange,
  MLTensorLimits,
} from './limits.js';
export {createML, install, ML, type MLContextOptions} from './ml.js';
export {MLOperand} from './operand.js';
export type * from './operators.js';
export {MLTensor, type MLOperandDescriptor, type MLTensorDescriptor} from './tensor.js';
