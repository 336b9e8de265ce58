// Elements of tensors: the arrays in which kernels keep them, the bytes that applications see, and
// conversions between types.
import {decodeHalf, encodeHalf, roundEven, roundToHalf} from './float16.js';

export const DATA_TYPES = [
  'float32',
  'float16',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'int8',
  'uint8',
] as const;
export type MLOperandDataType = (typeof DATA_TYPES)[number];
export type Shape = readonly number[];
export interface Descriptor {
  readonly dataType: MLOperandDataType;
  readonly shape: Shape;
}

export type NumberData = Float32Array | Int32Array | Uint32Array | Int8Array | Uint8Array;
export type BigIntData = BigInt64Array | BigUint64Array;
export type Data = NumberData | BigIntData;

// A tensor for kernels. They never change `data`, so several values may share it.
export interface Value extends Descriptor {
  readonly data: Data;
}

// float16 is kept as float32, which holds all its values.
const KEPT_IN = {
  float32: Float32Array,
  float16: Float32Array,
  int32: Int32Array,
  uint32: Uint32Array,
  int64: BigInt64Array,
  uint64: BigUint64Array,
  int8: Int8Array,
  uint8: Uint8Array,
};
const BITS = {
  float32: 32,
  float16: 16,
  int32: 32,
  uint32: 32,
  int64: 64,
  uint64: 64,
  int8: 8,
  uint8: 8,
};

export function isFloat(dataType: MLOperandDataType): boolean {
  return dataType === 'float32' || dataType === 'float16';
}

export function sizeOf(shape: Shape): number {
  return shape.reduce((size, dimension) => size * dimension, 1);
}

export function byteLengthOf({dataType, shape}: Descriptor): number {
  return (sizeOf(shape) * BITS[dataType]) / 8;
}

// The least and the greatest value of an integer type.
export function integerRange(dataType: MLOperandDataType): [bigint, bigint] {
  const bits = BigInt(BITS[dataType]);
  if (dataType.startsWith('uint')) return [0n, (1n << bits) - 1n];
  return [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n];
}

export function allocate(dataType: MLOperandDataType, size: number): Data {
  return new KEPT_IN[dataType](size);
}

// Converts results to floats: they are computed in double and rounded once, here.
export function floats(
  dataType: MLOperandDataType,
  size: number,
  at: (index: number) => number,
): Float32Array {
  const data = new Float32Array(size);
  if (dataType === 'float16') for (let i = 0; i < size; ++i) data[i] = roundToHalf(at(i));
  else for (let i = 0; i < size; ++i) data[i] = at(i);
  return data;
}

// Converts results to integers: they are exact, and wrap around if the type is too small.
export function integers(
  dataType: MLOperandDataType,
  size: number,
  at: (index: number) => bigint,
): Data {
  const data = allocate(dataType, size);
  if (data instanceof BigInt64Array || data instanceof BigUint64Array) {
    for (let i = 0; i < size; ++i) data[i] = at(i);
  } else {
    for (let i = 0; i < size; ++i) data[i] = Number(BigInt.asIntN(32, at(i)));
  }
  return data;
}

// The elements of `source` at `offsets`.
export function pick(dataType: MLOperandDataType, source: Data, offsets: Int32Array): Data {
  const data = allocate(dataType, offsets.length) as NumberData;
  const from = source as NumberData; // or both are of bigints
  for (let i = 0; i < offsets.length; ++i) data[i] = from[offsets[i]];
  return data;
}

// The numbers of a value whose type is a float, or an integer of at most 32 bits.
export function numbersOf(value: Value): NumberData {
  return value.data as NumberData;
}

export function bigintsOf(value: Value): bigint[] {
  return Array.from(value.data as NumberData, BigInt);
}

// Rounds an integer to double and keeps the lower bits as one sticky bit. Rounding that to a
// narrower type then equals rounding the integer once.
function toDouble(x: bigint): number {
  if (x >= -(1n << 53n) && x <= 1n << 53n) return Number(x);
  return Number((x >> 11n) | ((x & 0x7ffn) === 0n ? 0n : 1n)) * 2048;
}

// A float as an integer; `round` handles fractions. Values out of range become the nearest value in
// range, and NaN becomes 0.
function toInteger(x: number, dataType: MLOperandDataType, round: (x: number) => number): bigint {
  const [least, greatest] = integerRange(dataType);
  if (Number.isNaN(x)) return 0n;
  if (x <= Number(least)) return least;
  if (x >= Number(greatest)) return greatest;
  return BigInt(round(x));
}

// The number of an option in a data type, as the draft's section on casting says.
export function castNumber(x: number | bigint, dataType: MLOperandDataType): number | bigint {
  if (!isFloat(dataType)) {
    const [least, greatest] = integerRange(dataType);
    const integer = typeof x === 'bigint' ? x : toInteger(x, dataType, roundEven);
    return integer < least ? least : integer > greatest ? greatest : integer;
  }
  const float = typeof x === 'bigint' ? toDouble(x) : x;
  return dataType === 'float16' ? roundToHalf(float) : Math.fround(float);
}

// Elements converted to another type, as by the operator cast. The draft does not define floats out
// of an integer's range: here they saturate.
export function castData(value: Value, dataType: MLOperandDataType): Data {
  const size = value.data.length;
  if (isFloat(value.dataType)) {
    const from = numbersOf(value);
    if (isFloat(dataType)) return floats(dataType, size, (i) => from[i]);
    return integers(dataType, size, (i) => toInteger(from[i], dataType, Math.trunc));
  }
  const from = bigintsOf(value);
  if (isFloat(dataType)) return floats(dataType, size, (i) => toDouble(from[i]));
  return integers(dataType, size, (i) => from[i]);
}

// One element for a number from castNumber.
export function scalarOf(x: number | bigint, dataType: MLOperandDataType): Data {
  if (isFloat(dataType)) return Float32Array.of(Number(x));
  return integers(dataType, 1, () => BigInt(x));
}

// The elements in bytes. They may share memory.
export function decode(bytes: Uint8Array, dataType: MLOperandDataType): Data {
  if (dataType === 'float16') {
    const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
    return Float32Array.from(halves, decodeHalf);
  }
  const length = (bytes.byteLength * 8) / BITS[dataType];
  return new KEPT_IN[dataType](bytes.buffer as ArrayBuffer, bytes.byteOffset, length);
}

export function encode(data: Data, dataType: MLOperandDataType): Uint8Array {
  const array = dataType === 'float16' ? Uint16Array.from(data as Float32Array, encodeHalf) : data;
  return new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
}

// Whether a view of this class may hold elements of the type; a byte view may hold any.
export function matches(view: ArrayBufferView, dataType: MLOperandDataType): boolean {
  const name = (view as unknown as {[Symbol.toStringTag]: string})[Symbol.toStringTag];
  if (name === 'Uint8Array') return true;
  if (dataType === 'float16') return name === 'Float16Array' || name === 'Uint16Array';
  return name === KEPT_IN[dataType].name;
}
