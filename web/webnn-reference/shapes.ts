// Arithmetic on shapes: strides, broadcasting, and the offsets at which elements lie.
import {sizeOf, type Shape} from './elements.js';

// A dimension is positive and at most this; no tensor is nearly as large.
export const LARGEST_DIMENSION = 2 ** 31 - 1;

export function isDimension(size: number): boolean {
  return Number.isInteger(size) && size > 0 && size <= LARGEST_DIMENSION;
}

export function sameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((dimension, i) => dimension === b[i]);
}

export function stridesOf(shape: Shape): number[] {
  const strides: number[] = [];
  let stride = 1;
  for (let axis = shape.length - 1; axis >= 0; --axis) {
    strides[axis] = stride;
    stride *= shape[axis];
  }
  return strides;
}

// The shape that both are broadcast to; undefined if they do not fit.
export function broadcast(a: Shape, b: Shape): number[] | undefined {
  const rank = Math.max(a.length, b.length);
  const shape: number[] = [];
  for (let axis = 0; axis < rank; ++axis) {
    const first = a[axis - rank + a.length] ?? 1;
    const second = b[axis - rank + b.length] ?? 1;
    if (first !== second && first !== 1 && second !== 1) return undefined;
    shape.push(Math.max(first, second));
  }
  return shape;
}

// Whether `from` can be broadcast to `to`.
export function broadcastsTo(from: Shape, to: Shape): boolean {
  const shape = broadcast(from, to);
  return shape !== undefined && sameShape(shape, to);
}

// Offsets of the elements of a view, in row-major order of its coordinates.
export function offsetsOf(shape: Shape, strides: readonly number[], base = 0): Int32Array {
  const offsets = new Int32Array(sizeOf(shape));
  const at = shape.map(() => 0);
  let offset = base;
  for (let i = 0; i < offsets.length; ++i) {
    offsets[i] = offset;
    for (let axis = shape.length - 1; axis >= 0; --axis) {
      offset += strides[axis];
      if (++at[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      at[axis] = 0;
    }
  }
  return offsets;
}

// The offsets of the elements of a tensor of the shape `from` that is broadcast to `to`.
export function broadcastOffsets(from: Shape, to: Shape): Int32Array {
  const strides = stridesOf(from);
  const missing = to.length - from.length;
  return offsetsOf(
    to,
    to.map((_, axis) =>
      axis < missing || from[axis - missing] === 1 ? 0 : strides[axis - missing],
    ),
  );
}

// The offsets if each element is repeated over a block of `to`.
export function blockOffsets(from: Shape, to: Shape): Int32Array {
  const strides = stridesOf(from);
  return offsetsOf(
    to.flatMap((size, axis) => [from[axis], size / from[axis]]),
    to.flatMap((_, axis) => [strides[axis], 0]),
  );
}

// Offsets along some axes, in their order, and along all others. The offset of an element is the
// sum of two.
export function splitOffsets(
  shape: Shape,
  axes: readonly number[],
): {along: Int32Array; across: Int32Array} {
  const strides = stridesOf(shape);
  const others = shape.map((_, axis) => axis).filter((axis) => !axes.includes(axis));
  const offsets = (some: readonly number[]) =>
    offsetsOf(
      some.map((axis) => shape[axis]),
      some.map((axis) => strides[axis]),
    );
  return {along: offsets(axes), across: offsets(others)};
}
