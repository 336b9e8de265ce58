// Convolutions, pools and resampling.
import type {Draft, Rule} from '../draft.js';
import type {OperandState} from '../operand.js';
import {
  byLetter,
  conv2d,
  convTranspose2d,
  maxPool2d,
  pool2d,
  POOLS,
  resample2d,
  type Window,
} from '../kernels/spatial.js';
import {sequence, double} from '../webidl.js';

const LAYOUTS = ['nchw', 'nhwc'] as const;

function windowOf(draft: Draft): Window {
  return {
    padding: draft.integersLike('padding', [0, 0, 0, 0]),
    strides: draft.integersLike('strides', [1, 1], 1),
    dilations: draft.integersLike('dilations', [1, 1], 1),
  };
}

// The number of rows and columns of windows, with the fraction of a step that remains.
function outputSizes(
  input: Record<string, number>,
  cells: readonly number[],
  {padding, strides, dilations}: Window,
): number[] {
  return [input.h, input.w].map((size, i) => {
    const extent = (cells[i] - 1) * dilations[i] + 1;
    return (size - extent + padding[2 * i] + padding[2 * i + 1]) / strides[i] + 1;
  });
}

function shapeOf(layout: string, n: number, c: number, [h, w]: readonly number[]): number[] {
  const sizes: Record<string, number> = {n, c, h, w};
  return Array.from(layout, (letter) => sizes[letter]);
}

// The operands of both convolutions, and sizes of the input and the filter by letter.
function convolution(
  draft: Draft,
  input: unknown,
  filter: unknown,
  filterLayouts: readonly string[],
) {
  const x = draft.operand('input', input);
  const weights = draft.operand('filter', filter, x);
  const inputLayout = draft.choice('inputLayout', LAYOUTS);
  const filterLayout = draft.choice('filterLayout', filterLayouts);
  const groups = draft.integer('groups', 1);
  if (groups === 0) draft.fail('groups', 'at least 1', groups);
  const window = windowOf(draft);
  return {
    x,
    from: byLetter(inputLayout, x.shape),
    cells: byLetter(filterLayout, weights.shape),
    attributes: {groups, inputLayout, filterLayout, window},
  };
}

function transposedSizes(
  draft: Draft,
  from: Record<string, number>,
  cells: Record<string, number>,
  {padding, strides, dilations}: Window,
): number[] {
  const extra = draft.integersLike('outputPadding', [0, 0]);
  const wanted = draft.integers('outputSizes');
  if (wanted !== undefined && wanted.length !== 2) {
    draft.fail('outputSizes', '2 integers', wanted.length);
  }
  return ['h', 'w'].map((letter, i) => {
    const extent = (cells[letter] - 1) * dilations[i] + 1;
    const padded = padding[2 * i] + padding[2 * i + 1];
    const size = (from[letter] - 1) * strides[i] + extent - padded;
    const more = wanted === undefined ? extra[i] : wanted[i] - size;
    if (more < 0 || more >= strides[i]) {
      const name = wanted === undefined ? 'outputPadding' : 'outputSizes';
      draft.fail(name, `${strides[i]} sizes from ${size} on`, size + more);
    }
    return size + more;
  });
}

// Sizes that the application requests must match either rounding. (The draft also compares them
// with the strides and ignores the padding, which implementations do not do.)
function pooledSizes(draft: Draft, calculated: readonly number[]): number[] {
  const rounded = [calculated.map(Math.floor), calculated.map(Math.ceil)];
  const wanted = draft.integers('outputSizes');
  if (wanted !== undefined) {
    const isRounded = rounded.some(([h, w]) => h === wanted[0] && w === wanted[1]);
    if (wanted.length !== 2 || !isRounded) {
      draft.fail('outputSizes', `[${rounded[0]}] or [${rounded[1]}]`, `[${wanted}]`);
    }
    return wanted;
  }
  // The option's former name is roundingType.
  const types = ['floor', 'ceil'] as const;
  const roundings = [
    draft.choice('outputShapeRounding', types),
    draft.choice('roundingType', types),
  ];
  return rounded[roundings.includes('ceil') ? 1 : 0];
}

function poolRule(name: 'averagePool2d' | 'l2Pool2d' | 'maxPool2d'): Rule {
  return (draft, input, options) => {
    draft.options(options);
    const x: OperandState = draft.operand('input', input);
    const layout = draft.choice('layout', LAYOUTS);
    const from = byLetter(layout, x.shape);
    const cells = draft.integersLike('windowDimensions', [from.h, from.w], 1);
    const window = windowOf(draft);
    const sizes = pooledSizes(draft, outputSizes(from, cells, window));
    const pool = {layout, cells, window};
    const kernel = name === 'maxPool2d' ? maxPool2d(pool) : pool2d(POOLS[name], pool);
    return draft.output(x.dataType, shapeOf(layout, from.n, from.c, sizes), kernel);
  };
}

export const spatialRules = {
  conv2d(draft, input, filter, options) {
    draft.options(options);
    const layouts = ['oihw', 'hwio', 'ohwi', 'ihwo'];
    const {x, from, cells, attributes} = convolution(draft, input, filter, layouts);
    const {groups, inputLayout, window} = attributes;
    if (cells.i * groups !== from.c) {
      draft.fail('filter', `${groups} groups for ${from.c} channels`, `${cells.i} in each`);
    }
    // The draft does not require this, but without it the meaning of the groups is undefined.
    if (cells.o % groups !== 0) draft.fail('filter', `outputs for ${groups} groups`, cells.o);
    draft.operandOption('bias', x, [cells.o]);
    const sizes = outputSizes(from, [cells.h, cells.w], window).map(Math.floor);
    return draft.output(
      x.dataType,
      shapeOf(inputLayout, from.n, cells.o, sizes),
      conv2d(attributes),
    );
  },

  convTranspose2d(draft, input, filter, options) {
    draft.options(options);
    const layouts = ['iohw', 'hwoi', 'ohwi'];
    const {x, from, cells, attributes} = convolution(draft, input, filter, layouts);
    const {groups, inputLayout, window} = attributes;
    if (cells.i !== from.c) draft.fail('filter', `${from.c} input channels`, cells.i);
    if (from.c % groups !== 0) draft.fail('groups', `a divisor of ${from.c}`, groups);
    const channels = cells.o * groups;
    draft.operandOption('bias', x, [channels]);
    const sizes = transposedSizes(draft, from, cells, window);
    const shape = shapeOf(inputLayout, from.n, channels, sizes);
    return draft.output(x.dataType, shape, convTranspose2d(attributes));
  },

  averagePool2d: poolRule('averagePool2d'),
  l2Pool2d: poolRule('l2Pool2d'),
  maxPool2d: poolRule('maxPool2d'),

  resample2d(draft, input, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const mode = draft.choice('mode', ['nearest-neighbor', 'linear']);
    const scales = draft.option('scales', (value, what) => sequence(value, double, what)) ?? [1, 1];
    if (scales.length !== 2 || scales.some((scale) => scale <= 0)) {
      draft.fail('scales', '2 numbers above 0', `[${scales}]`);
    }
    const wanted = draft.integers('sizes');
    if (wanted !== undefined && (wanted.length !== 2 || wanted.includes(0))) {
      draft.fail('sizes', '2 sizes above 0', `[${wanted}]`);
    }
    const axes = draft.axes('axes', [2, 3], x.shape.length);
    if (axes.length !== 2) draft.fail('axes', '2 axes', axes.length);
    const shape = [...x.shape];
    axes.forEach((axis, i) => {
      shape[axis] = wanted?.[i] ?? Math.floor(x.shape[axis] * Math.fround(scales[i]));
    });
    return draft.output(x.dataType, shape, resample2d(axes, mode === 'linear'));
  },
} satisfies Record<string, Rule>;
