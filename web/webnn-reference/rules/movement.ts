// Operators that move elements and compute nothing.
import type {Draft, Rule} from '../draft.js';
import type {OperandState} from '../operand.js';
import {gather, gatherElements, gatherND, scatterElements, scatterND} from '../kernels/indexing.js';
import {
  concat,
  expand,
  pad,
  reverse,
  same,
  slice,
  split,
  tile,
  transpose,
  triangular,
} from '../kernels/movement.js';
import {sizeOf} from '../elements.js';
import {broadcastsTo, isDimension} from '../shapes.js';
import {sequence, signed, unsigned, unsignedSequence} from '../webidl.js';

// An argument with as many integers as the rank.
function perAxis(draft: Draft, name: string, value: unknown, rank: number): number[] {
  const values = unsignedSequence(value, draft.what(name));
  if (values.length !== rank) draft.fail(name, `${rank} integers`, values.length);
  return values;
}

function newShape(draft: Draft, value: unknown): number[] {
  const shape = unsignedSequence(value, draft.what('newShape'));
  const bad = shape.find((size) => !isDimension(size));
  if (bad !== undefined) draft.fail('newShape', 'dimensions above 0', bad);
  return shape;
}

// Indices of elements have the shape of the input except along the axis.
function elementIndices(
  draft: Draft,
  input: OperandState,
  value: unknown,
): {indices: OperandState; axis: number} {
  const indices = draft.operand('indices', value);
  const axis = draft.axis(draft.integer('axis', 0), input.shape.length);
  const size = indices.shape[axis];
  draft.checkShape(
    'indices',
    indices,
    input.shape.map((each, i) => (i === axis ? size : each)),
  );
  return {indices, axis};
}

// The shape of the slices at the coordinates.
function slicesShape(draft: Draft, input: OperandState, indices: OperandState): number[] {
  const length = indices.shape[indices.shape.length - 1];
  const rank = input.shape.length;
  if (length > rank) draft.fail('indices', `at most ${rank} coordinates`, length);
  return [...indices.shape.slice(0, -1), ...input.shape.slice(length)];
}

function splitSizes(draft: Draft, splits: unknown, size: number): number[] {
  if (typeof splits === 'object' && splits !== null) {
    const sizes = unsignedSequence(splits, draft.what('splits'));
    const isWrong = sizes.includes(0) || sizes.reduce((sum, each) => sum + each, 0) !== size;
    if (isWrong) draft.fail('splits', `positive sizes whose sum is ${size}`, `[${sizes}]`);
    return sizes;
  }
  const count = unsigned(splits, draft.what('splits'));
  if (count === 0 || size % count !== 0) draft.fail('splits', `a divisor of ${size}`, count);
  return Array.from({length: count}, () => size / count);
}

export const movementRules = {
  concat(draft, inputs, axisValue, options) {
    draft.options(options);
    const values = sequence(inputs, (value) => value, draft.what('inputs'));
    if (values.length === 0) draft.fail('inputs', 'at least one operand', 'none');
    const first = draft.operand('inputs', values[0], undefined, 'inputs[0]');
    const axis = draft.axis(axisValue, first.shape.length);
    const shape = [...first.shape];
    values.slice(1).forEach((value, i) => {
      const key = `inputs[${i + 1}]`;
      const next = draft.operand('inputs', value, first, key);
      const size = next.shape[axis];
      draft.checkShape(
        key,
        next,
        first.shape.map((each, j) => (j === axis ? size : each)),
      );
      shape[axis] += size;
    });
    return draft.output(first.dataType, shape, concat(axis));
  },

  expand(draft, input, shapeValue, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const shape = newShape(draft, shapeValue);
    if (!broadcastsTo(x.shape, shape)) {
      draft.fail('newShape', `a shape that [${x.shape}] can be repeated to`, `[${shape}]`);
    }
    return draft.output(x.dataType, shape, expand);
  },

  gather(draft, input, indices, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const at = draft.operand('indices', indices);
    const axis = draft.axis(draft.integer('axis', 0), x.shape.length);
    const shape = [...x.shape.slice(0, axis), ...at.shape, ...x.shape.slice(axis + 1)];
    return draft.output(x.dataType, shape, gather(axis));
  },

  gatherElements(draft, input, indices, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const at = elementIndices(draft, x, indices);
    return draft.output(x.dataType, at.indices.shape, gatherElements(at.axis));
  },

  gatherND(draft, input, indices, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const at = draft.operand('indices', indices);
    return draft.output(x.dataType, slicesShape(draft, x, at), gatherND);
  },

  pad(draft, input, beginning, ending, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const before = perAxis(draft, 'beginningPadding', beginning, x.shape.length);
    const after = perAxis(draft, 'endingPadding', ending, x.shape.length);
    const mode = draft.choice('mode', ['constant', 'edge', 'reflection']);
    if (mode === 'reflection') {
      x.shape.forEach((size, axis) => {
        const most = Math.max(before[axis], after[axis]);
        if (most >= size) draft.fail('padding', `less than ${size}, to be reflected`, most);
      });
    }
    const value = draft.number('value', 0, x.dataType);
    const shape = x.shape.map((size, axis) => before[axis] + size + after[axis]);
    return draft.output(x.dataType, shape, pad(before, mode, value));
  },

  reshape(draft, input, shapeValue, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const shape = newShape(draft, shapeValue);
    if (sizeOf(shape) !== sizeOf(x.shape)) {
      draft.fail('newShape', `a shape of ${sizeOf(x.shape)} elements`, `[${shape}]`);
    }
    return draft.output(x.dataType, shape, same);
  },

  reverse(draft, input, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const axes = draft.axes('axes', [...shape.keys()], shape.length);
    return draft.output(dataType, shape, reverse(axes));
  },

  scatterElements(draft, input, indices, updates, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const at = elementIndices(draft, x, indices);
    draft.checkShape('updates', draft.operand('updates', updates, x), at.indices.shape);
    return draft.output(x.dataType, x.shape, scatterElements(at.axis));
  },

  scatterND(draft, input, indices, updates, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const at = draft.operand('indices', indices);
    const given = draft.operand('updates', updates, x);
    draft.checkShape('updates', given, slicesShape(draft, x, at));
    return draft.output(x.dataType, x.shape, scatterND);
  },

  slice(draft, input, startValues, sizeValues, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const starts = perAxis(draft, 'starts', startValues, x.shape.length);
    const sizes = perAxis(draft, 'sizes', sizeValues, x.shape.length);
    const steps = draft.integersLike(
      'strides',
      x.shape.map(() => 1),
      1,
    );
    const shape = x.shape.map((size, axis) => {
      if (sizes[axis] === 0) draft.fail('sizes', 'sizes above 0', 0);
      const end = starts[axis] + sizes[axis];
      if (end > size) draft.fail('sizes', `an end of at most ${size} on axis ${axis}`, end);
      return Math.ceil(sizes[axis] / steps[axis]);
    });
    return draft.output(x.dataType, shape, slice(starts, steps));
  },

  split(draft, input, splits, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const axis = draft.axis(draft.integer('axis', 0), shape.length);
    const outputs = splitSizes(draft, splits, shape[axis]).map((size) => ({
      dataType,
      shape: shape.map((each, i) => (i === axis ? size : each)),
    }));
    return draft.outputs(outputs, split(axis));
  },

  tile(draft, input, repetitions, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const counts = perAxis(draft, 'repetitions', repetitions, shape.length);
    if (counts.includes(0)) draft.fail('repetitions', 'counts above 0', 0);
    return draft.output(
      dataType,
      shape.map((size, axis) => size * counts[axis]),
      tile,
    );
  },

  transpose(draft, input, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const permutation = draft.axes('permutation', [...shape.keys()].reverse(), shape.length);
    if (permutation.length !== shape.length) {
      draft.fail('permutation', `${shape.length} axes`, permutation.length);
    }
    const permuted = permutation.map((axis) => shape[axis]);
    return draft.output(dataType, permuted, transpose(permutation));
  },

  triangular(draft, input, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const diagonal = draft.option('diagonal', signed) ?? 0;
    return draft.output(dataType, shape, triangular(draft.flag('upper', true), diagonal));
  },
} satisfies Record<string, Rule>;
