// Element types by their ONNX numbers (TensorProto.DataType).
import type {Tensor} from '../common/index.js';

const TYPES: ReadonlyArray<[number, Tensor.Type]> = [
  [1, 'float32'],
  [2, 'uint8'],
  [3, 'int8'],
  [4, 'uint16'],
  [5, 'int16'],
  [6, 'int32'],
  [7, 'int64'],
  [8, 'string'],
  [9, 'bool'],
  [10, 'float16'],
  [11, 'float64'],
  [12, 'uint32'],
  [13, 'uint64'],
  [21, 'uint4'],
  [22, 'int4'],
];

const NAMES = new Map(TYPES);
const NUMBERS = new Map(TYPES.map(([number, name]) => [name, number]));

// Error: a type that has no name in the JavaScript API.
export function typeName(number: number): Tensor.Type {
  const name = NAMES.get(number);
  if (name === undefined) throw new Error(`element type ${number} of ONNX has no JavaScript type`);
  return name;
}

export function typeNumber(name: Tensor.Type): number {
  return NUMBERS.get(name)!;
}
