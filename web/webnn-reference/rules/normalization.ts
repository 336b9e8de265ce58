// Normalizations.
import type {Rule} from '../draft.js';
import {
  batchNormalization,
  instanceNormalization,
  layerNormalization,
} from '../kernels/normalization.js';

const EPSILON = 1e-5;

export const normalizationRules = {
  batchNormalization(draft, input, mean, variance, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const axis = draft.axis(draft.integer('axis', 1), x.shape.length);
    const channels = [x.shape[axis]];
    draft.checkShape('mean', draft.operand('mean', mean, x), channels);
    draft.checkShape('variance', draft.operand('variance', variance, x), channels);
    draft.operandOption('scale', x, channels);
    draft.operandOption('bias', x, channels);
    const epsilon = draft.float('epsilon', EPSILON, x.dataType);
    return draft.output(x.dataType, x.shape, batchNormalization(axis, epsilon));
  },

  instanceNormalization(draft, input, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const isNhwc = draft.choice('layout', ['nchw', 'nhwc']) === 'nhwc';
    const channels = [x.shape[isNhwc ? 3 : 1]];
    draft.operandOption('scale', x, channels);
    draft.operandOption('bias', x, channels);
    const epsilon = draft.float('epsilon', EPSILON, x.dataType);
    return draft.output(x.dataType, x.shape, instanceNormalization(isNhwc, epsilon));
  },

  layerNormalization(draft, input, options) {
    draft.options(options);
    const x = draft.operand('input', input);
    const axes = draft.axes('axes', [...x.shape.keys()].slice(1), x.shape.length);
    const sizes = axes.map((axis) => x.shape[axis]);
    draft.operandOption('scale', x, sizes);
    draft.operandOption('bias', x, sizes);
    const epsilon = draft.float('epsilon', EPSILON, x.dataType);
    return draft.output(x.dataType, x.shape, layerNormalization(axes, epsilon));
  },
} satisfies Record<string, Rule>;
