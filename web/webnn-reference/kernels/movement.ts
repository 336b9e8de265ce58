// Kernels that move elements and compute nothing.
import type {Kernel, SingleKernel} from '../draft.js';
import {allocate, pick, sizeOf, type NumberData, type Value} from '../elements.js';
import {broadcastOffsets, offsetsOf, stridesOf} from '../shapes.js';
import type {Inputs} from '../operand.js';

export const same: SingleKernel = ({input}) => input.data;

export const expand: SingleKernel = ({input}, {dataType, shape}) =>
  pick(dataType, input.data, broadcastOffsets(input.shape, shape));

export function transpose(permutation: readonly number[]): SingleKernel {
  return ({input}, {dataType, shape}) => {
    const strides = stridesOf(input.shape);
    const permuted = permutation.map((axis) => strides[axis]);
    return pick(dataType, input.data, offsetsOf(shape, permuted));
  };
}

// Elements from `starts` on, with the distances `steps`.
function section(
  input: Value,
  shape: readonly number[],
  starts: readonly number[],
  steps: readonly number[],
) {
  const strides = stridesOf(input.shape);
  const base = starts.reduce((sum, start, axis) => sum + start * strides[axis], 0);
  const stepped = strides.map((stride, axis) => stride * steps[axis]);
  return pick(input.dataType, input.data, offsetsOf(shape, stepped, base));
}

export function slice(starts: readonly number[], steps: readonly number[]): SingleKernel {
  return ({input}, {shape}) => section(input, shape, starts, steps);
}

export function reverse(axes: readonly number[]): SingleKernel {
  return ({input}, {shape}) => {
    const starts = shape.map((size, axis) => (axes.includes(axis) ? size - 1 : 0));
    const steps = shape.map((_, axis) => (axes.includes(axis) ? -1 : 1));
    return section(input, shape, starts, steps);
  };
}

export function split(axis: number): Kernel {
  return ({input}, outputs) => {
    let start = 0;
    return outputs.map(({shape}) => {
      const starts = shape.map((_, i) => (i === axis ? start : 0));
      start += shape[axis];
      return section(
        input,
        shape,
        starts,
        shape.map(() => 1),
      );
    });
  };
}

export function concat(axis: number): SingleKernel {
  return (inputs: Inputs, {dataType, shape}) => {
    const result = allocate(dataType, sizeOf(shape)) as NumberData;
    const strides = stridesOf(shape);
    let start = 0;
    for (const {data, shape: part} of Object.values(inputs)) {
      const at = offsetsOf(part, strides, start * strides[axis]);
      (data as NumberData).forEach((x, i) => {
        result[at[i]] = x;
      });
      start += part[axis];
    }
    return result;
  };
}

// Each axis is treated as two: the repetitions and, inside of them, the elements.
export const tile: SingleKernel = ({input}, {dataType, shape}) => {
  const strides = stridesOf(input.shape);
  const offsets = offsetsOf(
    input.shape.flatMap((size, axis) => [shape[axis] / size, size]),
    strides.flatMap((stride) => [0, stride]),
  );
  return pick(dataType, input.data, offsets);
};

// The position on an axis of `size` elements from which the padding takes its element; undefined if
// there is none.
const SOURCES = {
  constant: (at: number, size: number) => (at < 0 || at >= size ? undefined : at),
  edge: (at: number, size: number) => Math.min(Math.max(at, 0), size - 1),
  reflection: (at: number, size: number) => {
    const last = size - 1;
    return last - Math.abs(last - Math.abs(at));
  },
};

export function pad(
  before: readonly number[],
  mode: keyof typeof SOURCES,
  value: number | bigint,
): SingleKernel {
  return ({input}, {dataType, shape}) => {
    const strides = stridesOf(input.shape);
    const sources = shape.map((size, axis) =>
      Array.from({length: size}, (_, at) => SOURCES[mode](at - before[axis], input.shape[axis])),
    );
    const result = allocate(dataType, sizeOf(shape)) as NumberData;
    const from = input.data as NumberData;
    const fill = (
      from instanceof BigInt64Array || from instanceof BigUint64Array
        ? BigInt(value)
        : Number(value)
    ) as number;
    const at = shape.map(() => 0);
    for (let i = 0; i < result.length; ++i) {
      let offset: number | undefined = 0;
      for (let axis = 0; axis < at.length && offset !== undefined; ++axis) {
        const source = sources[axis][at[axis]];
        offset = source === undefined ? undefined : offset + source * strides[axis];
      }
      result[i] = offset === undefined ? fill : from[offset];
      for (let axis = at.length - 1; axis >= 0 && ++at[axis] === shape[axis]; --axis) at[axis] = 0;
    }
    return result;
  };
}

export function triangular(isUpper: boolean, diagonal: number): SingleKernel {
  return ({input}, {dataType, shape}) => {
    const result = allocate(dataType, input.data.length) as NumberData;
    const [rows, columns] = shape.slice(-2);
    (input.data as NumberData).forEach((x, i) => {
      const distance = (i % columns) - (Math.floor(i / columns) % rows);
      if (isUpper ? distance >= diagonal : distance <= diagonal) result[i] = x;
    });
    return result;
  };
}
