// Operators that combine the elements along axes.
import type {Rule} from '../draft.js';
import {argument, cumulativeSum, reduce, REDUCTIONS, softmax} from '../kernels/reduction.js';
import {dataType} from '../webidl.js';

// The remaining shape, with the reduced axes as 1 or without them.
function reduced(shape: readonly number[], axes: readonly number[], keep: boolean): number[] {
  if (keep) return shape.map((size, axis) => (axes.includes(axis) ? 1 : size));
  return shape.filter((_, axis) => !axes.includes(axis));
}

function reductionRule(name: keyof typeof REDUCTIONS): Rule {
  return (draft, input, options) => {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const axes = draft.axes('axes', [...shape.keys()], shape.length);
    const rest = reduced(shape, axes, draft.flag('keepDimensions'));
    return draft.output(dataType, rest, reduce(REDUCTIONS[name], axes));
  };
}

function argumentRule(isMax: boolean): Rule {
  return (draft, input, axisValue, options) => {
    draft.options(options);
    const {shape} = draft.operand('input', input);
    const axis = draft.axis(axisValue, shape.length);
    const type = draft.option('outputDataType', dataType) ?? 'int32';
    const rest = reduced(shape, [axis], draft.flag('keepDimensions'));
    return draft.output(type, rest, argument(axis, isMax));
  };
}

export const reductionRules = {
  reduceL1: reductionRule('reduceL1'),
  reduceL2: reductionRule('reduceL2'),
  reduceLogSum: reductionRule('reduceLogSum'),
  reduceLogSumExp: reductionRule('reduceLogSumExp'),
  reduceMax: reductionRule('reduceMax'),
  reduceMean: reductionRule('reduceMean'),
  reduceMin: reductionRule('reduceMin'),
  reduceProduct: reductionRule('reduceProduct'),
  reduceSum: reductionRule('reduceSum'),
  reduceSumSquare: reductionRule('reduceSumSquare'),

  argMin: argumentRule(false),
  argMax: argumentRule(true),

  softmax(draft, input, axisValue, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const axis = draft.axis(axisValue, shape.length);
    return draft.output(dataType, shape, softmax(axis));
  },

  cumulativeSum(draft, input, axisValue, options) {
    draft.options(options);
    const {dataType, shape} = draft.operand('input', input);
    const axis = draft.axis(axisValue, shape.length);
    const flags = {isExclusive: draft.flag('exclusive'), isReversed: draft.flag('reversed')};
    return draft.output(dataType, shape, cumulativeSum(axis, flags));
  },
} satisfies Record<string, Rule>;
