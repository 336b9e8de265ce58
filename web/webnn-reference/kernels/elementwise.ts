// Kernels that compute each element from one element of each operand.
import {
  bigintsOf,
  castData,
  floats,
  integerRange,
  integers,
  isFloat,
  numbersOf,
  pick,
  type Data,
  type Descriptor,
  type Value,
} from '../elements.js';
import type {SingleKernel} from '../draft.js';
import {blockOffsets, broadcastOffsets} from '../shapes.js';
import {roundEven} from './functions.js';

export type FloatFunction = (x: number) => number;
export type IntegerFunction = (x: bigint) => bigint;

export function unary(onFloats: FloatFunction, onIntegers?: IntegerFunction): SingleKernel {
  return ({input}, {dataType}) => {
    const size = input.data.length;
    if (isFloat(dataType)) {
      const x = numbersOf(input);
      return floats(dataType, size, (i) => onFloats(x[i]));
    }
    const x = bigintsOf(input);
    return integers(dataType, size, (i) => onIntegers!(x[i]));
  };
}

export interface BinaryFunctions {
  floats: (a: number, b: number) => number;
  integers: (a: bigint, b: bigint) => bigint;
}

// Functions of two operands, which are broadcast.
export function binary(
  functions: BinaryFunctions,
  a: Value,
  b: Value,
  {dataType, shape}: Descriptor,
): Data {
  const atA = broadcastOffsets(a.shape, shape);
  const atB = broadcastOffsets(b.shape, shape);
  if (isFloat(dataType)) {
    const x = numbersOf(a);
    const y = numbersOf(b);
    return floats(dataType, atA.length, (i) => functions.floats(x[atA[i]], y[atB[i]]));
  }
  const x = bigintsOf(a);
  const y = bigintsOf(b);
  return integers(dataType, atA.length, (i) => functions.integers(x[atA[i]], y[atB[i]]));
}

// The draft does not define division by zero: here it is 0.
function divide(a: bigint, b: bigint): bigint {
  return b === 0n ? 0n : a / b;
}

// The whole part of a power.
function power(a: bigint, b: bigint): bigint {
  if (b >= 0n) return a ** b;
  if (a === 1n || a === -1n) return b % 2n === 0n ? 1n : a;
  return 0n;
}

export const ARITHMETIC = {
  add: {floats: (a, b) => a + b, integers: (a, b) => a + b},
  sub: {floats: (a, b) => a - b, integers: (a, b) => a - b},
  mul: {floats: (a, b) => a * b, integers: (a, b) => a * b},
  div: {floats: (a, b) => a / b, integers: divide},
  max: {floats: Math.max, integers: (a, b) => (a > b ? a : b)},
  min: {floats: Math.min, integers: (a, b) => (a < b ? a : b)},
  pow: {floats: Math.pow, integers: power},
} satisfies Record<string, BinaryFunctions>;

// max(0, x) + slope * min(0, x)
export const PRELU: BinaryFunctions = {
  floats: (x, slope) => (x < 0 ? slope * x : x),
  integers: (x, slope) => (x < 0n ? slope * x : x),
};

type Comparable = number | bigint;

export const COMPARISONS = {
  equal: (a, b) => a === b,
  notEqual: (a, b) => a !== b,
  greater: (a, b) => a > b,
  greaterOrEqual: (a, b) => a >= b,
  lesser: (a, b) => a < b,
  lesserOrEqual: (a, b) => a <= b,
  logicalAnd: (a, b) => Boolean(a) && Boolean(b),
  logicalOr: (a, b) => Boolean(a) || Boolean(b),
  logicalXor: (a, b) => Boolean(a) !== Boolean(b),
} satisfies Record<string, (a: Comparable, b: Comparable) => boolean>;

export function compare(test: (a: Comparable, b: Comparable) => boolean): SingleKernel {
  return ({a, b}, {shape}) => {
    const atA = broadcastOffsets(a.shape, shape);
    const atB = broadcastOffsets(b.shape, shape);
    return Uint8Array.from(atA, (at, i) => Number(test(a.data[at], b.data[atB[i]])));
  };
}

export const TESTS = {
  logicalNot: (x) => x === 0,
  isNaN: Number.isNaN,
  isInfinite: (x) => Math.abs(x) === Infinity,
} satisfies Record<string, (x: number) => boolean>;

export function testEach(test: (x: number) => boolean): SingleKernel {
  return ({a}) => Uint8Array.from(numbersOf(a), (x) => Number(test(x)));
}

export function clamp(least: number | bigint, greatest: number | bigint): SingleKernel {
  return unary(
    (x) => Math.min(Math.max(x, Number(least)), Number(greatest)),
    (x) => (x < least ? BigInt(least) : x > greatest ? BigInt(greatest) : x),
  );
}

export const cast: SingleKernel = ({input}, {dataType}) => castData(input, dataType);

export const where: SingleKernel = ({condition, trueValue, falseValue}, {dataType, shape}) => {
  const conditions = pick('uint8', condition.data, broadcastOffsets(condition.shape, shape));
  const spread = ({data, shape: from}: Value) =>
    pick(dataType, data, broadcastOffsets(from, shape)) as Float32Array; // or any other
  const result = spread(falseValue);
  spread(trueValue).forEach((x, i) => {
    if (conditions[i]) result[i] = x;
  });
  return result;
};

// The quotient is rounded to the type of the input before it is rounded to an integer, as in the
// draft's decomposition into div and roundEven. Otherwise ties would depend on the precision.
export const quantizeLinear: SingleKernel = ({input, scale, zeroPoint}, {dataType}) => {
  const x = numbersOf(input);
  const scales = numbersOf(scale);
  const zeroPoints = bigintsOf(zeroPoint);
  const at = blockOffsets(scale.shape, input.shape);
  const quotients = floats(input.dataType, x.length, (i) => x[i] / scales[at[i]]);
  const [least, greatest] = integerRange(dataType);
  return integers(dataType, x.length, (i) => {
    const quotient = roundEven(quotients[i]);
    if (Number.isNaN(quotient)) return 0n;
    const sum = quotient + Number(zeroPoints[at[i]]);
    if (sum <= Number(least)) return least;
    return sum >= Number(greatest) ? greatest : BigInt(sum);
  });
};

export const dequantizeLinear: SingleKernel = ({input, scale, zeroPoint}, {dataType}) => {
  const x = numbersOf(input);
  const scales = numbersOf(scale);
  const zeroPoints = numbersOf(zeroPoint);
  const at = blockOffsets(scale.shape, input.shape);
  return floats(dataType, x.length, (i) => (x[i] - zeroPoints[at[i]]) * scales[at[i]]);
};
