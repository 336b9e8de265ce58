// Kernels that combine the elements along axes.
import type {SingleKernel} from '../draft.js';
import {
  bigintsOf,
  floats,
  integers,
  isFloat,
  numbersOf,
  type Data,
  type Descriptor,
  type Value,
} from '../elements.js';
import {splitOffsets} from '../shapes.js';

// Each function gets the elements of one result.
export interface Reduction {
  floats: (x: Float64Array) => number;
  integers?: (x: readonly bigint[]) => bigint;
}

function sum(x: Float64Array): number {
  return x.reduce((total, value) => total + value, 0);
}

function sumOfIntegers(x: readonly bigint[]): bigint {
  return x.reduce((total, value) => total + value, 0n);
}

// The greatest element is factored out, so that nothing overflows.
function logSumExp(x: Float64Array): number {
  const greatest = x.reduce((most, value) => Math.max(most, value), -Infinity);
  if (!Number.isFinite(greatest)) return greatest;
  return greatest + Math.log(sum(x.map((value) => Math.exp(value - greatest))));
}

export const REDUCTIONS = {
  reduceL1: {
    floats: (x) => sum(x.map(Math.abs)),
    integers: (x) => sumOfIntegers(x.map((value) => (value < 0n ? -value : value))),
  },
  reduceL2: {floats: (x) => Math.sqrt(sum(x.map((value) => value * value)))},
  reduceLogSum: {floats: (x) => Math.log(sum(x))},
  reduceLogSumExp: {floats: logSumExp},
  reduceMax: {
    floats: (x) => x.reduce((most, value) => Math.max(most, value)),
    integers: (x) => x.reduce((most, value) => (value > most ? value : most)),
  },
  reduceMean: {floats: (x) => sum(x) / x.length},
  reduceMin: {
    floats: (x) => x.reduce((least, value) => Math.min(least, value)),
    integers: (x) => x.reduce((least, value) => (value < least ? value : least)),
  },
  reduceProduct: {
    floats: (x) => x.reduce((product, value) => product * value, 1),
    integers: (x) => x.reduce((product, value) => product * value, 1n),
  },
  reduceSum: {floats: sum, integers: sumOfIntegers},
  reduceSumSquare: {
    floats: (x) => sum(x.map((value) => value * value)),
    integers: (x) => sumOfIntegers(x.map((value) => value * value)),
  },
} satisfies Record<string, Reduction>;

export function reduce(reduction: Reduction, axes: readonly number[]): SingleKernel {
  return ({input}, {dataType}) => {
    const {along, across} = splitOffsets(input.shape, axes);
    if (isFloat(dataType)) {
      const x = numbersOf(input);
      return floats(dataType, across.length, (i) =>
        reduction.floats(Float64Array.from(along, (offset) => x[across[i] + offset])),
      );
    }
    const x = bigintsOf(input);
    return integers(dataType, across.length, (i) =>
      reduction.integers!(Array.from(along, (offset) => x[across[i] + offset])),
    );
  };
}

// Of equal elements the first one counts; the draft does not define which.
export function argument(axis: number, isMax: boolean): SingleKernel {
  return ({input: {shape, data}}, {dataType}) => {
    const {along, across} = splitOffsets(shape, [axis]);
    return integers(dataType, across.length, (i) => {
      let best = 0;
      along.forEach((offset, index) => {
        const x = data[across[i] + offset];
        const most = data[across[i] + along[best]];
        if (isMax ? x > most : x < most) best = index;
      });
      return BigInt(best);
    });
  };
}

export function softmax(axis: number): SingleKernel {
  return ({input}, {dataType}) => {
    const {along, across} = splitOffsets(input.shape, [axis]);
    const x = numbersOf(input);
    const result = new Float64Array(x.length);
    for (const start of across) {
      const row = Float64Array.from(along, (offset) => x[start + offset]);
      const greatest = row.reduce((most, value) => Math.max(most, value));
      const powers = row.map((value) => Math.exp(value - greatest));
      const total = sum(powers);
      along.forEach((offset, i) => {
        result[start + offset] = powers[i] / total;
      });
    }
    return floats(dataType, result.length, (i) => result[i]);
  };
}

// Running sums; `add` works on numbers or on bigints.
function accumulate<T>(
  {shape}: Value,
  axis: number,
  {isExclusive, isReversed}: {isExclusive: boolean; isReversed: boolean},
  x: ArrayLike<T>,
  zero: T,
  add: (a: T, b: T) => T,
): T[] {
  const {along, across} = splitOffsets(shape, [axis]);
  const result: T[] = [];
  const order = isReversed ? along.slice().reverse() : along;
  for (const start of across) {
    let total = zero;
    for (const offset of order) {
      const next = add(total, x[start + offset]);
      result[start + offset] = isExclusive ? total : next;
      total = next;
    }
  }
  return result;
}

export function cumulativeSum(
  axis: number,
  flags: {isExclusive: boolean; isReversed: boolean},
): SingleKernel {
  return ({input}: Record<string, Value>, {dataType}: Descriptor): Data => {
    const size = input.data.length;
    if (isFloat(dataType)) {
      const sums = accumulate(input, axis, flags, numbersOf(input), 0, (a, b) => a + b);
      return floats(dataType, size, (i) => sums[i]);
    }
    const sums = accumulate(input, axis, flags, bigintsOf(input), 0n, (a, b) => a + b);
    return integers(dataType, size, (i) => sums[i]);
  };
}
