// WebNN's data types: their arrays, their sizes, and the ONNX types that they hold.
import type {Tensor} from '../common/index.js';
import {arrayOver, type NumericData, type NumericType} from '../common/tensor.js';
import type {Elements, MLOperandDataType, MLOperandDescriptor} from './api.js';

const TYPES: Readonly<Partial<Record<Tensor.Type, MLOperandDataType>>> = {
  float32: 'float32',
  float16: 'float16',
  int64: 'int64',
  uint64: 'uint64',
  int32: 'int32',
  uint32: 'uint32',
  int8: 'int8',
  uint8: 'uint8',
  int4: 'int4',
  uint4: 'uint4',
  bool: 'uint8',
};

// The data type that holds elements of an ONNX type without conversion; undefined if there is none.
export function dataTypeOf(type: Tensor.Type): MLOperandDataType | undefined {
  return TYPES[type];
}

function elementCount(shape: readonly number[]): number {
  return shape.reduce((count, dim) => count * dim, 1);
}

const BITS: Readonly<Record<MLOperandDataType, number>> = {
  float32: 32,
  float16: 16,
  int64: 64,
  uint64: 64,
  int32: 32,
  uint32: 32,
  int8: 8,
  uint8: 8,
  int4: 4,
  uint4: 4,
};

export function byteLengthOf({dataType, shape}: MLOperandDescriptor): number {
  return Math.ceil((elementCount(shape) * BITS[dataType]) / 8);
}

export function isSameShape(a: readonly number[], b: readonly number[]): boolean {
  return a.length === b.length && a.every((dim, i) => dim === b[i]);
}

export function isSameDescriptor(a: MLOperandDescriptor, b: MLOperandDescriptor): boolean {
  return a.dataType === b.dataType && isSameShape(a.shape, b.shape);
}

export function descriptorText({dataType, shape}: MLOperandDescriptor): string {
  return `${dataType} [${shape.join(', ')}]`;
}

// A new array for the elements of a tensor.
export function newArray(type: NumericType, byteLength: number): NumericData {
  return arrayOver(type, new ArrayBuffer(byteLength));
}

// Least and greatest value of the types that may replace others.
const RANGES: Readonly<Partial<Record<NumericType, readonly [bigint, bigint]>>> = {
  int64: [-(2n ** 63n), 2n ** 63n - 1n],
  uint64: [0n, 2n ** 64n - 1n],
  int32: [-(2n ** 31n), 2n ** 31n - 1n],
  uint32: [0n, 2n ** 32n - 1n],
  int8: [-128n, 127n],
  uint8: [0n, 255n],
  bool: [0n, 1n],
};

// The integers of `bytes`, which are of type `from`, as an array of type `to`.
export function convertIntegers(
  bytes: Elements,
  from: NumericType,
  to: NumericType,
  what: string,
): NumericData {
  const source = elementsOver(bytes, from) as ArrayLike<number | bigint>;
  const [least, most] = RANGES[to] ?? fail(`${what}: integers cannot become ${to}`);
  const isBig = to === 'int64' || to === 'uint64';
  const result = newArray(to, (source.length * BITS[dataTypeOf(to)!]) / 8);
  for (let i = 0; i < source.length; ++i) {
    const value = source[i];
    if (value < least || value > most) {
      throw new RangeError(`${what}: element ${i}, ${value}, is not in the range of ${to}`);
    }
    result[i] = isBig ? BigInt(value) : Number(value);
  }
  return result;
}

function fail(message: string): never {
  throw new TypeError(message);
}

// The elements of a type in a view, or in a copy of it if the view is not aligned.
function elementsOver({buffer, byteOffset, byteLength}: Elements, type: NumericType): NumericData {
  const width = Math.max(1, BITS[dataTypeOf(type)!] / 8);
  if (byteOffset % width === 0) return arrayOver(type, buffer, byteOffset, byteLength / width);
  return arrayOver(type, buffer.slice(byteOffset, byteOffset + byteLength));
}
