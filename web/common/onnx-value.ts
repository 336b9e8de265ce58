// What a model takes and gives.
import type {Tensor} from './tensor.js';

// Sequences and maps have no type yet.
export type NonTensorType = never;
export type OnnxValue = Tensor | NonTensorType;
export type OnnxValueDataLocation = Tensor.DataLocation;
