// Convolutions, pools and resampling of two spatial axes, in any layout.
import type {SingleKernel} from '../draft.js';
import {floats, numbersOf, pick, sizeOf, type Value} from '../elements.js';
import {stridesOf} from '../shapes.js';

export interface Window {
  strides: readonly number[];
  dilations: readonly number[];
  // Before and after the rows, before and after the columns.
  padding: readonly number[];
}

// Sizes or strides by the letters of a layout such as 'nchw'.
export function byLetter(layout: string, values: readonly number[]): Record<string, number> {
  return Object.fromEntries(Array.from(layout, (letter, i) => [letter, values[i]]));
}

interface Axes {
  size: Record<string, number>;
  stride: Record<string, number>;
}

function axesOf(layout: string, shape: readonly number[]): Axes {
  return {size: byLetter(layout, shape), stride: byLetter(layout, stridesOf(shape))};
}

// Calls `visit` for each pair of a window cell and its input position. The padding has no
// positions.
function overWindow(
  at: readonly [row: number, column: number],
  size: Record<string, number>,
  cells: Record<string, number>,
  {strides, dilations, padding}: Window,
  visit: (row: number, column: number, cellRow: number, cellColumn: number) => void,
): void {
  for (let i = 0; i < cells.h; ++i) {
    const row = at[0] * strides[0] + i * dilations[0] - padding[0];
    if (row < 0 || row >= size.h) continue;
    for (let j = 0; j < cells.w; ++j) {
      const column = at[1] * strides[1] + j * dilations[1] - padding[2];
      if (column >= 0 && column < size.w) visit(row, column, i, j);
    }
  }
}

// Calls `visit` for each element of an image, with its coordinates and its offset.
function overImage(
  {size, stride}: Axes,
  visit: (n: number, c: number, row: number, column: number, offset: number) => void,
): void {
  for (let n = 0; n < size.n; ++n) {
    for (let c = 0; c < size.c; ++c) {
      for (let row = 0; row < size.h; ++row) {
        for (let column = 0; column < size.w; ++column) {
          const offset = n * stride.n + c * stride.c + row * stride.h + column * stride.w;
          visit(n, c, row, column, offset);
        }
      }
    }
  }
}

export interface Convolution {
  groups: number;
  inputLayout: string;
  filterLayout: string; // of the letters o, i, h, w
  window: Window;
}

function biasAt(inputs: Record<string, Value | undefined>, channel: number): number {
  return inputs.bias === undefined ? 0 : numbersOf(inputs.bias)[channel];
}

export function conv2d({groups, inputLayout, filterLayout, window}: Convolution): SingleKernel {
  return (inputs, {dataType, shape}) => {
    const from = axesOf(inputLayout, inputs.input.shape);
    const filter = axesOf(filterLayout, inputs.filter.shape);
    const to = axesOf(inputLayout, shape);
    const x = numbersOf(inputs.input);
    const weights = numbersOf(inputs.filter);
    const result = new Float64Array(sizeOf(shape));
    const channelsOfGroup = filter.size.i;
    const outputsOfGroup = to.size.c / groups;
    overImage(to, (n, o, row, column, offset) => {
      const firstChannel = Math.floor(o / outputsOfGroup) * channelsOfGroup;
      let sum = biasAt(inputs, o);
      overWindow([row, column], from.size, filter.size, window, (h, w, i, j) => {
        let at = n * from.stride.n + firstChannel * from.stride.c;
        at += h * from.stride.h + w * from.stride.w;
        let weight = o * filter.stride.o + i * filter.stride.h + j * filter.stride.w;
        for (let c = 0; c < channelsOfGroup; ++c) {
          sum += x[at] * weights[weight];
          at += from.stride.c;
          weight += filter.stride.i;
        }
      });
      result[offset] = sum;
    });
    return floats(dataType, result.length, (i) => result[i]);
  };
}

// Each element of the input is spread over its window in the output.
export function convTranspose2d(attributes: Convolution): SingleKernel {
  const {groups, inputLayout, filterLayout, window} = attributes;
  return (inputs, {dataType, shape}) => {
    const from = axesOf(inputLayout, inputs.input.shape);
    const filter = axesOf(filterLayout, inputs.filter.shape);
    const to = axesOf(inputLayout, shape);
    const x = numbersOf(inputs.input);
    const weights = numbersOf(inputs.filter);
    const result = new Float64Array(sizeOf(shape));
    overImage(to, (_n, o, _row, _column, offset) => {
      result[offset] = biasAt(inputs, o);
    });
    const channelsOfGroup = from.size.c / groups;
    const outputsOfGroup = filter.size.o;
    overImage(from, (n, c, row, column, offset) => {
      const firstOutput = Math.floor(c / channelsOfGroup) * outputsOfGroup;
      overWindow([row, column], to.size, filter.size, window, (h, w, i, j) => {
        let at = n * to.stride.n + firstOutput * to.stride.c;
        at += h * to.stride.h + w * to.stride.w;
        let weight = c * filter.stride.i + i * filter.stride.h + j * filter.stride.w;
        for (let o = 0; o < outputsOfGroup; ++o) {
          result[at] += x[offset] * weights[weight];
          at += to.stride.c;
          weight += filter.stride.o;
        }
      });
    });
    return floats(dataType, result.length, (i) => result[i]);
  };
}

// The padding is not a part of the average.
export const POOLS = {
  averagePool2d: (x: readonly number[]) => x.reduce((sum, value) => sum + value, 0) / x.length,
  l2Pool2d: (x: readonly number[]) => Math.sqrt(x.reduce((sum, value) => sum + value * value, 0)),
};

interface Pool {
  layout: string;
  cells: readonly number[];
  window: Window;
}

// Calls `visit` with the offsets in the input for each element of the output.
function overPool(
  {layout, cells, window}: Pool,
  input: Value,
  shape: readonly number[],
  visit: (offset: number, sources: number[]) => void,
): void {
  const from = axesOf(layout, input.shape);
  const size = {h: cells[0], w: cells[1]};
  overImage(axesOf(layout, shape), (n, c, row, column, offset) => {
    const sources: number[] = [];
    overWindow([row, column], from.size, size, window, (h, w) => {
      const {stride} = from;
      sources.push(n * stride.n + c * stride.c + h * stride.h + w * stride.w);
    });
    visit(offset, sources);
  });
}

export function pool2d(combine: (x: readonly number[]) => number, attributes: Pool): SingleKernel {
  return ({input}, {dataType, shape}) => {
    const x = numbersOf(input);
    const result = new Float64Array(sizeOf(shape));
    overPool(attributes, input, shape, (offset, sources) => {
      result[offset] = combine(sources.map((at) => x[at]));
    });
    return floats(dataType, result.length, (i) => result[i]);
  };
}

// Rounding up can give a window that has only padding and no greatest element. The draft does not
// define its result. Here it is the first element of the input.
export function maxPool2d(attributes: Pool): SingleKernel {
  return ({input}, {dataType, shape}) => {
    const {data} = input;
    const offsets = new Int32Array(sizeOf(shape));
    // NaN differs from itself and counts as greatest.
    const greater = (best: number, at: number) =>
      data[at] > data[best] || data[at] !== data[at] ? at : best;
    overPool(attributes, input, shape, (offset, sources) => {
      offsets[offset] = sources.length === 0 ? 0 : sources.reduce(greater);
    });
    return pick(dataType, data, offsets);
  };
}

// For each output position on an axis: the two input elements around it, and the weight of the
// second.
function between(
  size: number,
  outputSize: number,
  isLinear: boolean,
): {low: number; high: number; part: number}[] {
  return Array.from({length: outputSize}, (_, i) => {
    const unclamped = (i + 0.5) / (outputSize / size) - 0.5;
    const at = Math.min(Math.max(unclamped, 0), size - 1);
    if (!isLinear) return {low: Math.ceil(at - 0.5), high: 0, part: 0};
    const low = Math.floor(at);
    return {low, high: Math.ceil(at), part: at - low};
  });
}

export function resample2d(axes: readonly number[], isLinear: boolean): SingleKernel {
  return ({input}, {dataType, shape}) => {
    const x = numbersOf(input);
    const strides = stridesOf(input.shape);
    const [first, second] = axes;
    const places = axes.map((axis) => between(input.shape[axis], shape[axis], isLinear));
    const outputStrides = stridesOf(shape);
    return floats(dataType, sizeOf(shape), (i) => {
      const at = outputStrides.map((stride, axis) => Math.floor(i / stride) % shape[axis]);
      const base = at.reduce(
        (sum, index, axis) => (axes.includes(axis) ? sum : sum + index * strides[axis]),
        0,
      );
      const row = places[0][at[first]];
      const column = places[1][at[second]];
      const element = (h: number, w: number) => x[base + h * strides[first] + w * strides[second]];
      const mix = (h: number) =>
        column.part === 0
          ? element(h, column.low)
          : element(h, column.low) * (1 - column.part) + element(h, column.high) * column.part;
      return row.part === 0
        ? mix(row.low)
        : mix(row.low) * (1 - row.part) + mix(row.high) * row.part;
    });
  };
}
