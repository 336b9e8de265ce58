// Matrix products.
import type {Rule} from '../draft.js';
import {gemm, matmul} from '../kernels/matrix.js';
import {broadcast, broadcastsTo} from '../shapes.js';

export const matrixRules = {
  matmul(draft, a, b, options) {
    draft.options(options);
    const first = draft.operand('a', a);
    const second = draft.operand('b', b, first);
    const [m, k] = first.shape.slice(-2);
    const [rows, n] = second.shape.slice(-2);
    if (k !== rows) draft.fail('b', `${k} rows`, rows);
    const batches =
      broadcast(first.shape.slice(0, -2), second.shape.slice(0, -2)) ??
      draft.fail('shapes', 'ones that fit', `[${first.shape}] and [${second.shape}]`);
    return draft.output(first.dataType, [...batches, m, n], matmul);
  },

  gemm(draft, a, b, options) {
    draft.options(options);
    const first = draft.operand('a', a);
    const second = draft.operand('b', b, first);
    const {dataType} = first;
    const attributes = {
      alpha: draft.float('alpha', 1, dataType),
      beta: draft.float('beta', 1, dataType),
      isATransposed: draft.flag('aTranspose'),
      isBTransposed: draft.flag('bTranspose'),
    };
    const [m, k] = attributes.isATransposed ? [...first.shape].reverse() : first.shape;
    const [rows, n] = attributes.isBTransposed ? [...second.shape].reverse() : second.shape;
    if (k !== rows) draft.fail('b', `${k} rows`, rows);
    const c = draft.operandOption('c', first);
    if (c !== undefined && !broadcastsTo(c.shape, [m, n])) {
      draft.fail('c', `a shape that can be repeated to [${m},${n}]`, `[${c.shape}]`);
    }
    return draft.output(dataType, [m, n], gemm(attributes));
  },
} satisfies Record<string, Rule>;
