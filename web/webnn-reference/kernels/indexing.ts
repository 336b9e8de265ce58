// Kernels that gather and scatter elements by indices. Negative indices count from the end. Indices
// out of range are clamped, as the draft lets implementations do.
import type {SingleKernel} from '../draft.js';
import {allocate, pick, type Data, type NumberData, type Value} from '../elements.js';
import {offsetsOf, stridesOf} from '../shapes.js';

function place(index: number | bigint, size: number): number {
  const at = Number(index);
  return Math.min(Math.max(at < 0 ? at + size : at, 0), size - 1);
}

export function gather(axis: number): SingleKernel {
  return ({input, indices}, {dataType, shape}) => {
    const strides = stridesOf(input.shape);
    const size = input.shape[axis];
    const [before, after] = [input.shape.slice(0, axis), input.shape.slice(axis + 1)];
    const outer = offsetsOf(before, strides.slice(0, axis));
    const inner = offsetsOf(after, strides.slice(axis + 1));
    const result = new Int32Array(shape.reduce((product, dimension) => product * dimension, 1));
    let i = 0;
    for (const out of outer) {
      for (const index of indices.data) {
        const at = out + place(index, size) * strides[axis];
        for (const offset of inner) result[i++] = at + offset;
      }
    }
    return pick(dataType, input.data, result);
  };
}

// Offsets into a tensor of the shape, for indices along one axis.
function elementOffsets(shape: readonly number[], indices: Value, axis: number): Int32Array {
  const strides = stridesOf(shape);
  const withoutAxis = strides.map((stride, i) => (i === axis ? 0 : stride));
  const offsets = offsetsOf(indices.shape, withoutAxis);
  return offsets.map((offset, i) => offset + place(indices.data[i], shape[axis]) * strides[axis]);
}

// Offsets of the elements of the slices at the coordinates.
function sliceOffsets(shape: readonly number[], indices: Value): Int32Array {
  const strides = stridesOf(shape);
  const length = indices.shape[indices.shape.length - 1];
  const inner = offsetsOf(shape.slice(length), strides.slice(length));
  const offsets: number[] = [];
  for (let i = 0; i < indices.data.length; i += length) {
    let base = 0;
    for (let axis = 0; axis < length; ++axis) {
      base += place(indices.data[i + axis], shape[axis]) * strides[axis];
    }
    for (const offset of inner) offsets.push(base + offset);
  }
  return Int32Array.from(offsets);
}

export function gatherElements(axis: number): SingleKernel {
  return ({input, indices}, {dataType}) =>
    pick(dataType, input.data, elementOffsets(input.shape, indices, axis));
}

export const gatherND: SingleKernel = ({input, indices}, {dataType}) =>
  pick(dataType, input.data, sliceOffsets(input.shape, indices));

function scatter(input: Value, updates: Value, offsets: Int32Array): Data {
  const result = allocate(input.dataType, input.data.length) as NumberData;
  result.set(input.data as NumberData);
  (updates.data as NumberData).forEach((x, i) => {
    result[offsets[i]] = x;
  });
  return result;
}

export function scatterElements(axis: number): SingleKernel {
  return ({input, indices, updates}) =>
    scatter(input, updates, elementOffsets(input.shape, indices, axis));
}

export const scatterND: SingleKernel = ({input, indices, updates}) =>
  scatter(input, updates, sliceOffsets(input.shape, indices));
